import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// A device asks to be admitted, by an invitation of node 0, which root made an admin.
@Suite struct JoiningTests {
  private let bench: EngineBench
  private let device: SigningKey
  private let session = SessionID(rawValue: 77)

  init() throws {
    bench = try EngineBench()
    device = SigningKey(random: { [UInt8](repeating: 3, count: $0) })
  }

  private var node: BenchNode { bench.nodes[0] }

  private func invite(role: Text = "officer", validMilliseconds: Int64 = 3_600_000) throws -> Invitation {
    try node.engine.invite(
      InvitationDraft(user: "new", role: role, profile: ValueMap(), validMilliseconds: validMilliseconds))
  }

  /// What somebody may get wrong.
  struct Asking {
    var key: SigningKey?
    var secret: [UInt8]?
    var label: Text = "phone"
    var host: UInt32 = 1
    /// After it was proved.
    var change: (inout JoinRequest) -> Void = { _ in }
  }

  private let exporter = Digest(words: (5, 6, 7, 8))

  private var fleet: FleetID { bench.founding.fleet }

  private var fleetProof: Digest {
    FleetProof(fleet, exporter: exporter, hash: SHA256.hash, authenticationCode: HMAC.sha256).proof(ofDialer: true)
  }

  /// Answers what the node refused.
  @discardableResult
  private func ask(_ invitation: Invitation, _ asking: Asking = Asking()) -> [JoinRefusal] {
    let key = asking.key ?? device
    node.engine.turn([
      .opened(
        OpenedLink(
          session: session, dialTag: nil, remote: SocketAddress(.ipv4(asking.host), port: 1),
          peerKey: key.publicKey, exporter: exporter))
    ])
    var request = JoinRequest(
      fleetProof: fleetProof,
      invitation: InvitationID(inviter: node.key.publicKey, serial: invitation.serial), device: key.publicKey,
      label: asking.label)
    request.proof = HMAC.sha256(
      key: asking.secret ?? invitation.secret.bytes, JoinProof.ofJoiner(request, to: fleet, exporter: exporter))
    asking.change(&request)
    node.trace.clear()
    node.links.clearSent()
    node.engine.turn([.message(session, .joinRequest(request), byteCount: 100)])
    node.engine.turn([.closed(session, reason: "done")])
    return node.links.sent.compactMap { if case .joinRefused(let refusal) = $0 { refusal } else { nil } }
  }

  private var isMember: Bool { node.state.mesh.authority.member(of: device.publicKey) != nil }

  private var isAccepted: Bool {
    node.links.sent.contains { if case .joinAccepted = $0 { true } else { false } }
  }

  @Test("a device that cannot be admitted is refused, and nobody else notices")
  func notAdmitted() throws {
    let other = try bench.addMember()
    let open = bench.meet(other, 0)
    let invitation = try invite()
    try node.refuse("INSERT", on: "statements")
    #expect(ask(invitation) == [.busy] && !isMember)
    #expect(ask(invitation, Asking(secret: [UInt8](repeating: 9, count: 32))) == [.wrongCode])
    #expect(node.state.mesh.sessions.ids.contains(open) && !node.journal.says("begins again"))
    try node.allow("statements")
    ask(invitation)
    #expect(isAccepted && isMember && node.state.mesh.sessions.ids.contains(open))
  }

  @Test("who shows the secret is a member, durably, before it hears so, as the inviter's record says")
  func admitted() throws {
    let invitation = try invite()
    ask(invitation)
    #expect(
      node.trace.entries == [
        .began, .committed, .sent(session, "statements"), .sent(session, "joinAccepted"), .closed(session),
      ])
    let member = try #require(node.state.mesh.authority.member(of: device.publicKey))
    #expect(member.user == "new" && member.membership.role == "officer" && member.membership.label == "phone")
    let statement = try #require(node.state.mesh.authority[member.id])
    #expect(statement.issuer == node.key.publicKey)
    #expect(
      statement.answeredInvitation == InvitationID(inviter: node.key.publicKey, serial: invitation.serial))
    #expect(node.engine.openInvitations.isEmpty)
    try bench.restart(0)
    #expect(isMember && node.engine.openInvitations.isEmpty)
  }

  @Test("the answer shows that it is by who made the invitation")
  func bothWays() throws {
    let invitation = try invite()
    ask(invitation)
    let request = JoinRequest(
      fleetProof: fleetProof,
      invitation: InvitationID(inviter: node.key.publicKey, serial: invitation.serial), device: device.publicKey,
      label: "phone")
    let acceptances = node.links.sent.compactMap { if case .joinAccepted(let it) = $0 { it } else { nil } }
    let proof = HMAC.sha256(
      key: invitation.secret.bytes, JoinProof.ofInviter(JoinAcceptance(), to: request, of: fleet, exporter: exporter))
    #expect(acceptances.map(\.proof) == [proof])
    #expect(
      proof != HMAC.sha256(key: invitation.secret.bytes, JoinProof.ofJoiner(request, to: fleet, exporter: exporter)))
  }

  @Test("memberships go on in the chain of the device that signs them, with what else it says")
  func chained() throws {
    try node.write(try PartitionName("p"), Put("a"))
    ask(try invite())
    ask(try invite(), Asking(key: bench.newKey()))
    let own = node.state.mesh.authority.fleetStatements.filter { $0.issuer == node.key.publicKey }
    #expect(own.map(\.sequence) == [1, 2, 3])
    #expect(own.dropFirst().map(\.previous) == own.dropLast().map(\.id))
  }

  @Test("asked again by the same device it says the same, also after a restart, and signs nothing more")
  func lostAnswer() throws {
    let invitation = try invite()
    ask(invitation)
    let count = node.state.mesh.authority.count
    try bench.restart(0)
    #expect(ask(invitation).isEmpty && isAccepted)
    #expect(node.state.mesh.authority.count == count)
  }

  @Test("another device hears that the code was used, before and after a restart")
  func used() throws {
    let invitation = try invite()
    ask(invitation)
    let other = Asking(key: bench.newKey())
    #expect(ask(invitation, other) == [.used])
    try bench.restart(0)
    #expect(ask(invitation, other) == [.used])
  }

  @Test("a store that was put back from before the use learns of it from the statements")
  func putBack() throws {
    let invitation = try invite()
    ask(invitation)
    let membership = try #require(node.state.mesh.authority.member(of: device.publicKey))
    let statement = try #require(node.state.mesh.authority[membership.id])
    // The same store without the use.
    let before = try EngineBench()
    let older = before.nodes[0]
    let again = try older.engine.invite(
      InvitationDraft(user: "new", role: "officer", profile: ValueMap(), validMilliseconds: 3_600_000))
    older.engine.add([statement])
    #expect(again.serial == invitation.serial)
    let desk = JoinDesk(state: older.state)
    var request = JoinRequest(
      fleetProof: .zero,
      invitation: InvitationID(inviter: older.key.publicKey, serial: again.serial), device: bench.newKey().publicKey,
      label: "thief")
    request.proof = HMAC.sha256(key: again.secret.bytes, JoinProof.ofJoiner(request, to: fleet, exporter: exporter))
    guard case .refused(.used) = desk.judge(request, exporter: exporter) else {
      Issue.record("a second use")
      return
    }
  }

  /// A store in which nothing was ever invited, and which has heard how somebody entered with the invitation.
  private func elder(than invitation: Invitation) throws -> BenchNode {
    ask(invitation)
    let membership = try #require(node.state.mesh.authority.member(of: device.publicKey))
    let older = try EngineBench()
    older.nodes[0].engine.add([try #require(node.state.mesh.authority[membership.id])])
    return try keep(older)
  }

  private func keep(_ bench: EngineBench) throws -> BenchNode {
    benches.held.append(bench)
    return bench.nodes[0]
  }

  /// A bench's directories go with it.
  private final class Benches { var held: [EngineBench] = [] }
  private let benches = Benches()

  @Test("an invitation that statements show as answered is not listed as open, and whoever cancels it hears of its use")
  func answeredBefore() throws {
    let invitation = try invite()
    let older = try elder(than: invitation)
    let again = try older.engine.invite(
      InvitationDraft(user: "new", role: "officer", profile: ValueMap(), validMilliseconds: 3_600_000))
    // Above what statements show as used.
    #expect(again.serial == invitation.serial + 1)
    try older.engine.store { try $0.put(invitation) }
    try older.state.readAgain()
    #expect(older.state.invitations[invitation.serial]?.state == .open)
    #expect(older.engine.openInvitations.map(\.serial) == [again.serial])
    #expect(throws: InvitationError.used(invitation.serial)) {
      try older.engine.cancelInvitation(invitation.serial)
    }
    try older.engine.cancelInvitation(again.serial)
    #expect(throws: InvitationError.notOpen(again.serial)) { try older.engine.cancelInvitation(again.serial) }
  }

  @Test("a store put back from before an invitation was made says that it was used, and of others that it made none")
  func unknownButUsed() throws {
    let (used, unused) = (try invite(), try invite())
    let older = try elder(than: used)
    for (invitation, expected) in [(used, JoinRefusal.used), (unused, .wrongCode)] {
      let request = JoinRequest(
        fleetProof: .zero,
        invitation: InvitationID(inviter: older.key.publicKey, serial: invitation.serial),
        device: bench.newKey().publicKey, label: "late")
      guard case .refused(expected) = JoinDesk(state: older.state).judge(request, exporter: exporter) else {
        Issue.record("invitation \(invitation.serial) is not answered with \(expected)")
        continue
      }
    }
  }

  @Test("an expired, a cancelled and an unknown code are told apart")
  func closedCodes() throws {
    let (brief, cancelled) = (try invite(validMilliseconds: 1_000), try invite())
    try node.engine.cancelInvitation(cancelled.serial)
    bench.clock.wallMilliseconds += 1_000
    #expect(ask(brief) == [.expired])
    #expect(ask(cancelled) == [.cancelled])
    #expect(node.engine.refusedJoins == 0)
    let unknown = Invitation(
      serial: 99, secret: brief.secret, user: "", role: "", profile: ValueMap(), expires: .max)
    #expect(ask(unknown) == [.wrongCode])
    #expect(!isMember && node.engine.refusedJoins == 1)
  }

  enum Forgery: CaseIterable { case secret, label, exporter, serial }

  @Test(
    "a proof that is not of this request under this secret is wrong, whatever became of the invitation",
    arguments: Forgery.allCases, [false, true])
  func forged(forgery: Forgery, isCancelled: Bool) throws {
    let (invitation, other) = (try invite(), try invite())
    if isCancelled { try node.engine.cancelInvitation(invitation.serial) }
    var asking = Asking()
    switch forgery {
    case .secret: asking.secret = other.secret.bytes
    case .label: asking.change = { $0.label = "other" }
    case .exporter:
      asking.change = { request in
        request.proof = HMAC.sha256(
          key: invitation.secret.bytes, JoinProof.ofJoiner(request, to: fleet, exporter: .zero))
      }
    case .serial: asking.change = { $0.invitation = InvitationID(inviter: $0.invitation.inviter, serial: other.serial) }
    }
    #expect(ask(invitation, asking) == [.wrongCode])
    #expect(!isMember && node.journal.says("refused to admit a device"))
  }

  @Test("an admin is admitted by the root's key where it lies, and not without")
  func admins() throws {
    #expect(throws: InvitationError.rootKeyMissing) { try invite(role: "admin") }
    node.root.isHere = true
    let invitation = try invite(role: "admin")
    node.root.isHere = false
    #expect(ask(invitation) == [.rootKeyMissing])
    node.root.isHere = true
    #expect(ask(invitation).isEmpty && isAccepted)
    let authority = node.state.mesh.authority
    #expect(authority.isAdmin(device.publicKey))
    let statement = try #require(authority.member(of: device.publicKey).flatMap { authority[$0.id] })
    #expect(statement.issuer == authority.root)
    #expect(statement.answeredInvitation?.inviter == node.key.publicKey)
    #expect(ask(invitation, Asking(key: bench.newKey())) == [.used])
  }

  @Test("who is no admin makes no invitation; who is none any more redeems none")
  func notAnAdmin() throws {
    let other = try EngineBench(2)
    #expect(throws: InvitationError.notAnAdmin) {
      try other.nodes[1].engine.invite(
        InvitationDraft(user: "u", role: "", profile: ValueMap(), validMilliseconds: 3_600_000))
    }
    let invitation = try invite()
    let listing = Statement.Listing(tips: [
      Statement.ScopeTips(scope: "", tips: [Statement.Tip(issuer: node.key.publicKey, sequence: 0, id: .zero)])
    ])
    let end = Statement.End(reason: .retire, target: .membership(bench.founding.membership), listing: listing)
    node.engine.add([try bench.statement(.end(end))])
    #expect(ask(invitation) == [.notAnAdmin])
  }

  @Test(
    "a membership that the disk does not take admits nobody, then or later, and uses up nothing",
    arguments: ["statements", "invitations"])
  func diskFull(table: String) throws {
    let invitation = try invite()
    try node.refuse(table == "statements" ? "INSERT" : "UPDATE", on: table)
    ask(invitation)
    #expect(!isMember && !isAccepted)
    #expect(!node.trace.entries.contains(.sent(session, "statements")))
    #expect(node.engine.openInvitations.map(\.serial) == [invitation.serial])
    try bench.restart(0)
    #expect(!isMember && node.engine.openInvitations == [invitation])
    ask(invitation)
    #expect(isMember)
  }

  @Test("10,000 wrong tries from 100 addresses get nothing and are mostly not looked at; another address is")
  func guessing() throws {
    let invitation = try invite()
    var looked = 0
    for attempt in 0..<10_000 {
      var asking = Asking()
      (asking.host, asking.secret) = (UInt32(attempt % 100 + 2), [UInt8](repeating: UInt8(attempt % 251), count: 32))
      let refusals = ask(invitation, asking)
      if refusals == [.wrongCode] { looked += 1 } else { #expect(refusals == [.busy]) }
    }
    #expect(looked == 100 * Int(JoinGate.burst) && !isMember)
    #expect(ask(invitation).isEmpty && isAccepted)
  }

  @Test("who has guessed too often is looked at again after a pause")
  func pause() {
    var gate = JoinGate()
    var now = MonotonicTime(milliseconds: 5_000)
    let host = SocketAddress.Host.ipv4(1)
    func count(_ tries: Int) -> Int {
      (0..<tries).count { _ in
        guard gate.isOpen(to: host, now) else { return false }
        gate.charge(host, now)
        return true
      }
    }
    #expect(count(100) == Int(JoinGate.burst))
    now = now.advanced(byMilliseconds: JoinGate.pauseMilliseconds)
    #expect(count(100) == 1)
    for other in 0..<10_000 as Range<UInt32> { gate.charge(.ipv4(other + 2), now) }
    #expect(gate.hostCount <= JoinGate.hostLimit)
  }

  @Test("invitations have limits, and old ones are forgotten but for their numbers")
  func limits() throws {
    #expect(throws: InvitationError.tooLong) { try invite(validMilliseconds: 999) }
    #expect(throws: InvitationError.tooLong) { try invite(validMilliseconds: .max) }
    #expect(throws: InvitationError.notOpen(1)) { try node.engine.cancelInvitation(1) }
    #expect(try (1...3).map { _ in try invite(validMilliseconds: 1_000).serial } == [1, 2, 3])
    bench.clock.wallMilliseconds += InvitationBook.keptMilliseconds + 1_000
    #expect(try invite().serial == 4)
    #expect(try node.count("invitations") == 2)
    #expect(node.engine.openInvitations.map(\.serial) == [4])
  }

  @Test("of closed invitations the latest are kept, no more than a limit, and every open one")
  func closedOnes() throws {
    let secret = try #require(InvitationSecret([UInt8](repeating: 1, count: InvitationSecret.byteCount)))
    let all = (1...UInt64(InvitationBook.closedLimit) + 3).map { serial in
      var invitation = Invitation(
        serial: serial, secret: secret, user: "u", role: "officer", profile: ValueMap(), expires: 1_000)
      if serial != 2 { invitation.state = .cancelled }
      return invitation
    }
    #expect(InvitationBook(all).forgotten(at: 0) == [1, 3])
    #expect(InvitationBook(all).forgotten(at: 1_000) == [1, 2, 3], "it is over for the second, too")
  }
}
