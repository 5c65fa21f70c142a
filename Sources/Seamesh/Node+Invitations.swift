import Engine
import Identity
import Replication
import Transport

extension Node {
  package func invite(_ request: InviteRequest) throws(NodeError) -> IssuedInvitation {
    try invite(request, addresses: Node.reachableAddresses(endpoints.listen))
  }

  func invite(_ request: InviteRequest, addresses: [Text]) throws(NodeError) -> IssuedInvitation {
    try request.check()
    let draft = InvitationDraft(
      user: request.user, role: request.role, profile: request.profile, validMilliseconds: request.validMilliseconds)
    let invitation = try answer { try $0.invite(draft) }
    let code = JoinCode(
      fleet: files.fleet, invitation: InvitationID(inviter: files.deviceKey.publicKey, serial: invitation.serial),
      secret: invitation.secret, expires: UInt64(clamping: invitation.expires / 1_000), addresses: addresses)
    do throws(JoinCode.Invalid) {
      return IssuedInvitation(
        code: try code.encode(), status: InvitationStatus(invitation), notes: notes(role: request.role))
    } catch {
      throw NodeError(.unprocessable, "no join code can be made of this: \(error)")
    }
  }

  /// A mistyped role is none that anybody is granted anything by, and its device would only seem to have one.
  private func notes(role: Text) -> [String] {
    guard !role.utf8.isEmpty, !RightsNames(authority.now).isInUse(role: role) else { return [] }
    return ["no device and no grant has the role \(role.string) yet: cancel the invitation if that is mistyped"]
  }

  package func invitations() throws(NodeError) -> [InvitationStatus] {
    try engine.ask { $0.openInvitations.map(InvitationStatus.init) }
  }

  package func cancelInvitation(_ serial: UInt64) throws(NodeError) {
    try answer { try $0.cancelInvitation(serial) }
  }

  private func answer<Answer: Sendable>(
    _ body: @escaping @Sendable (NodeEngine) throws -> Answer
  ) throws(NodeError) -> Answer {
    let result = try engine.ask { engine in Result { try body(engine) }.mapError { NodeError(any: $0) } }
    return try result.get()
  }
}

extension InviteRequest {
  /// What can be said of it without asking a node.
  package func check() throws(NodeError) {
    try NodeSetup.check(user, "a user", mayBeEmpty: false)
    try NodeSetup.check(role, "a role")
    try NodeSetup.check(profile)
    guard 1_000...InvitationDraft.longestMilliseconds ~= validMilliseconds else {
      throw NodeError(InvitationError.tooLong)
    }
  }
}

extension InvitationStatus {
  fileprivate init(_ invitation: Invitation) {
    self.init(
      serial: invitation.serial, user: invitation.user, role: invitation.role, profile: invitation.profile,
      expires: invitation.expires)
  }
}

extension NodeSetup {
  /// Work with the invitations of a directory where no node runs. The code then has no addresses: discovery finds the
  /// node once it runs.
  package static func invite(_ path: String, _ request: InviteRequest) throws(NodeError) -> IssuedInvitation {
    try withResting(path) { node throws(NodeError) in try node.invite(request, addresses: []) }
  }

  package static func invitations(_ path: String) throws(NodeError) -> [InvitationStatus] {
    try withResting(path) { node throws(NodeError) in try node.invitations() }
  }

  package static func cancelInvitation(_ path: String, _ serial: UInt64) throws(NodeError) {
    try withResting(path) { node throws(NodeError) in try node.cancelInvitation(serial) }
  }

  /// A node that meets nobody, for as long as the work takes.
  private static func withResting<Answer>(
    _ path: String, _ work: (Node) throws(NodeError) -> Answer
  ) throws(NodeError) -> Answer {
    var configuration = NodeConfiguration()
    configuration.listenHost = .ipv4(0x7f00_0001)
    configuration.usesDiscovery = false
    configuration.dialsRemembered = false
    configuration.logLevel = .error
    configuration.recoveryMilliseconds = 0
    let node = try Node.start(directory: path, configuration: configuration)
    defer { node.stop() }
    return try work(node)
  }
}
