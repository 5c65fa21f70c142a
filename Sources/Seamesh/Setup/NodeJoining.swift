import Engine
import Identity
import Replication
import Storage
import Synchronization
import Transport
import Wire

/// How a join stands, for whoever waits for it.
package struct JoinProgress: Sendable, Equatable {
  /// The device that has to admit: its label once somebody has told it, else the beginning of its id.
  package let inviter: String
  package let elapsedMilliseconds: UInt64
  package let timeoutMilliseconds: UInt64
  /// Why the node that was asked last did not help.
  package let lastFailure: String?

  package init(
    inviter: String, elapsedMilliseconds: UInt64, timeoutMilliseconds: UInt64, lastFailure: String? = nil
  ) {
    (self.inviter, self.elapsedMilliseconds) = (inviter, elapsedMilliseconds)
    (self.timeoutMilliseconds, self.lastFailure) = (timeoutMilliseconds, lastFailure)
  }
}

extension NodeSetup {
  package struct Joined: Sendable {
    package let fleet: FleetID
    package let device: DeviceID
    package let statementCount: Int
    /// Where the files of an earlier set-up are that was cut off here.
    package let aside: String?
  }

  /// Enters the fleet of the code: asks at its addresses, at `peers`, and at whatever node of that fleet discovery finds,
  /// until the device that made the code admits this one. `progress` is called every half a second or so.
  package static func join(
    _ path: String, code text: String, label: Text, peers: [PeerAddress], usesDiscovery: Bool = true,
    timeoutMilliseconds: UInt64 = 30_000, progress: (JoinProgress) -> Void = { _ in }
  ) throws(NodeError) -> Joined {
    let code: JoinCode
    do throws(JoinCode.Invalid) { code = try JoinCode.parse(text) } catch {
      throw NodeError(.badRequest, "this is no join code: \(error)")
    }
    do {
      try check(label: label)
      let claim = try SetupClaim(path)
      let key = claim.key(forJoining: code.fleet) ?? SigningKey()
      let directory = try claim.begin(.join, fleet: code.fleet, key: key)
      let admission = Admission(code: code, key: key, label: label)
      let addresses = peers + code.addresses.compactMap { PeerAddress($0.string) }
      let statements = try FleetInquiry(admission)
        .run(addresses, usesDiscovery: usesDiscovery, timeoutMilliseconds: timeoutMilliseconds) { inquiry in
          progress(
            JoinProgress(
              inviter: admission.inviter, elapsedMilliseconds: inquiry.elapsedMilliseconds,
              timeoutMilliseconds: timeoutMilliseconds, lastFailure: inquiry.lastFailure))
          return false
        }
      try enter(directory, claim.lock, fleet: code.fleet, deviceKey: key, statements: statements)
      return Joined(
        fleet: code.fleet, device: DeviceID(key.publicKey), statementCount: statements.count, aside: claim.aside)
    } catch {
      throw NodeError(any: error)
    }
  }
}

/// Asks to be admitted with a join code.
private final class Admission: InquiryTopic {
  private let code: JoinCode
  let key: SigningKey
  private let label: Text
  /// The inviting device's, as some member told it.
  private let inviterLabel = Mutex<Text>("")
  /// What the last member that was asked said: worth more than why others were not reached.
  private let memberWord = Mutex<String?>(nil)

  init(code: JoinCode, key: SigningKey, label: Text) { (self.code, self.key, self.label) = (code, key, label) }

  var fleet: FleetID { code.fleet }

  var inviter: String {
    let label = inviterLabel.withLock { $0 }
    let id = DeviceID(code.invitation.inviter).shortText
    return label.utf8.isEmpty ? id : "\(label.string) (\(id))"
  }

  private func request(_ connection: OpenedConnection) -> JoinRequest {
    var request = JoinRequest(
      fleetProof: connection.fleetProof(code.fleet).proof(ofDialer: true), invitation: code.invitation,
      device: key.publicKey, label: label)
    request.proof = proof(JoinProof.ofJoiner(request, to: code.fleet, exporter: connection.exporter))
    return request
  }

  private func proof(_ message: [UInt8]) -> Digest { HMAC.sha256(key: code.secret.bytes, message) }

  func greeting(_ connection: OpenedConnection) -> Message { .joinRequest(request(connection)) }

  func step(after message: Message, on connection: OpenedConnection) -> InquiryStep {
    let isInviter = connection.peerKey == code.invitation.inviter
    switch message {
    case .joinAccepted(let acceptance):
      let expected = proof(
        JoinProof.ofInviter(acceptance, to: request(connection), of: code.fleet, exporter: connection.exporter))
      return isInviter && expected.equalsInConstantTime(acceptance.proof)
        ? .complete : .askElsewhere("\(connection.remote) took this device in without knowing the code")
    case .joinRefused(.busy): return .askAgain("\(connection.remote) is busy")
    case .joinRefused(let refusal) where isInviter:
      return .giveUp(NodeError(.notPermitted, Admission.sentence(refusal)))
    case .joinRefused(let refusal): return .askElsewhere(hint(refusal, connection))
    default: return .wait
    }
  }

  /// What another member says, which may be wrong.
  private func hint(_ refusal: JoinRefusal, _ connection: OpenedConnection) -> String {
    if case .askInviter(let label) = refusal, !label.utf8.isEmpty, !label.hasControlCharacters {
      inviterLabel.withLock { $0 = label }
    }
    let word =
      switch refusal {
      case .askInviter: "\(connection.remote) is another device of the fleet, and did not make this code"
      case .used: "\(connection.remote) says that this code was used already"
      default: "\(connection.remote) cannot admit this device"
      }
    memberWord.withLock { $0 = word }
    return word
  }

  private static func sentence(_ refusal: JoinRefusal) -> String {
    let again = "ask for a new one with seamesh invite"
    return switch refusal {
    case .wrongCode: "the device that this join code names did not make it: \(again)"
    case .expired: "this join code has expired: \(again)"
    case .cancelled: "this join code was cancelled: \(again)"
    case .used: "this join code was used by another device: \(again)"
    case .notAnAdmin: "the device that made this join code is no admin any more: ask another one for a code"
    case .rootKeyMissing:
      "this join code makes an admin, which needs the fleet's root key beside the device that made it: put it there"
    case .askInviter, .busy: "the device that made this join code does not answer for it: try again"
    }
  }

  func failure(_ inquiry: InquiryProgress) -> NodeError {
    let last = (memberWord.withLock { $0 } ?? inquiry.lastFailure).map { " (\($0))" } ?? ""
    return NodeError(
      .failed,
      "device \(inviter), which made this join code, was not reached within \(inquiry.elapsedMilliseconds / 1_000) s\(last): "
        + "start it in the same network, or give its address with --peer HOST:PORT")
  }
}
