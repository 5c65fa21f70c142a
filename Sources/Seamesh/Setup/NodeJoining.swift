import Identity
import Replication
import Storage
import Transport
import Wire

extension NodeSetup {
  /// A code for another device. Whoever has it can enter the fleet until the admission secret is changed.
  static func joinCode(
    _ files: NodeFiles, _ request: InviteRequest, addresses: [Text]
  ) throws(NodeError) -> String {
    guard let secret = files.admissionSecret else {
      throw NodeError(.notPermitted, "this device does not hold the fleet's admission secret")
    }
    guard request.role != FleetFounding.adminRole else {
      throw NodeError(.notPermitted, "only the fleet root makes admins; choose another role")
    }
    try check(request.user, "a user", mayBeEmpty: false)
    try check(request.role, "a role")
    try check(request.profile)
    let code = JoinCode(
      fleet: files.fleet, secret: secret, user: request.user, role: request.role, profile: request.profile,
      addresses: addresses)
    do throws(JoinCode.Invalid) { return try code.encode() } catch {
      throw NodeError(.unprocessable, "no join code can be made of this: \(error)")
    }
  }

  /// The same without a running node: the code then has no addresses, and discovery must find somebody.
  package static func invite(_ path: String, _ request: InviteRequest) throws(NodeError) -> String {
    let directory: DataDirectory
    do throws(FileError) { directory = try DataDirectory(existing: path) } catch { throw NodeError(error) }
    return try joinCode(try NodeFiles.load(directory), request, addresses: [])
  }

  package struct Joined: Sendable {
    package let fleet: FleetID
    package let device: DeviceID
    package let statementCount: Int
    /// Where the files of an earlier set-up are that was cut off here.
    package let aside: String?
  }

  /// Enters the fleet of the code: asks at its addresses, at `peers`, and at whatever node of that fleet discovery finds,
  /// until one admits this device.
  package static func join(
    _ path: String, code text: String, label: Text, peers: [PeerAddress], usesDiscovery: Bool = true,
    timeoutMilliseconds: UInt64 = 30_000
  ) throws(NodeError) -> Joined {
    let code: JoinCode
    do throws(JoinCode.Invalid) { code = try JoinCode.parse(text) } catch {
      throw NodeError(.badRequest, "this is no join code: \(error)")
    }
    do {
      try check(label, "a label")
      let claim = try SetupClaim(path)
      let key = claim.key(forJoining: code.fleet) ?? SigningKey()
      let directory = try claim.begin(.join, fleet: code.fleet, key: key)
      let addresses = peers + code.addresses.compactMap { PeerAddress($0.string) }
      let statements = try FleetInquiry(Admission(code: code, key: key, label: label))
        .run(addresses, usesDiscovery: usesDiscovery, timeoutMilliseconds: timeoutMilliseconds)
      try enter(
        directory, claim.lock, fleet: code.fleet, deviceKey: key, secret: code.secret, statements: statements)
      return Joined(
        fleet: code.fleet, device: DeviceID(key.publicKey), statementCount: statements.count, aside: claim.aside)
    } catch {
      throw NodeError(any: error)
    }
  }
}

/// Asks to be admitted with a join code.
private struct Admission: InquiryTopic {
  let code: JoinCode
  let key: SigningKey
  let label: Text

  var fleet: FleetID { code.fleet }

  func greeting(_ connection: OpenedConnection) -> Message {
    var request = JoinRequest(
      fleet: code.fleet, device: key.publicKey, user: code.user, label: label, role: code.role, profile: code.profile)
    request.proof = code.secret.key(in: code.fleet).sign(request.signedBytes(exporter: connection.exporter))
    return .joinRequest(request)
  }

  func step(after message: Message) -> InquiryStep {
    switch message {
    case .joinAccepted: .complete
    case .joinRefused(.wrongCode): .giveUp(NodeError(.notPermitted, Admission.sentence(.wrongCode)))
    case .joinRefused(let refusal): .askElsewhere(Admission.sentence(refusal))
    default: .wait
    }
  }

  private static func sentence(_ refusal: JoinRefusal) -> String {
    switch refusal {
    case .wrongCode: "the join code is not this fleet's: ask for a new one with seamesh invite"
    case .otherFleet: "the node at this address belongs to another fleet"
    case .cannotAdmit: "the node that was asked cannot admit devices: ask another one"
    case .busy: "the node that was asked is busy: try again"
    }
  }
}
