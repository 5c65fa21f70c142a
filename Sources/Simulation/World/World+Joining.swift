import Engine
import Replication
import Synchronization
import Wire

/// An invitation on its way from a node's thread to who is invited.
final class GivenInvitation: Sendable {
  private let held = Mutex<Invitation?>(nil)
  var invitation: Invitation? { held.withLock { $0 } }
  func put(_ invitation: Invitation?) { held.withLock { $0 = invitation } }
}

/// A device that asks to be admitted, as the real one does: one connection, the code's proof, all statements in return.
final class JoinClient {
  unowned let world: World
  unowned let node: SimulatedNode
  let life: Int
  let startedAt: UInt64
  private var statements: [Statement] = []

  static let patienceMilliseconds: UInt64 = 15_000

  init(world: World, node: SimulatedNode) {
    node.life += 1
    (self.world, self.node, life, startedAt) = (world, node, node.life, world.clock)
  }

  private var exporter = Digest.zero

  func opened(_ connection: UInt64, _ exporter: Digest) {
    self.exporter = exporter
    guard let request = request() else { return }
    _ = world.send(MessageCodec.encode(.joinRequest(request)), on: connection, from: 0)
  }

  private func request() -> JoinRequest? {
    guard let invitation = node.invitation?.invitation else { return nil }
    let inviter = world.nodes[World.inviter].key.publicKey
    var request = JoinRequest(
      fleetProof: FakeCryptography.fleetProof(world.fleet.id, exporter).proof(ofDialer: true),
      invitation: InvitationID(inviter: inviter, serial: invitation.serial),
      device: node.key.publicKey, label: "joined")
    request.proof = FakeCryptography.authenticationCode(
      invitation.secret.bytes, JoinProof.ofJoiner(request, to: world.fleet.id, exporter: exporter))
    return request
  }

  func received(_ frame: [UInt8], _ connection: UInt64) {
    switch try? MessageCodec.decode(frame[...]) {
    case .statements(let encoded, _): statements += encoded.compactMap { FakeCryptography.statement($0).statement }
    case .joinAccepted(let acceptance):
      guard let request = request(), let secret = node.invitation?.invitation?.secret.bytes,
        FakeCryptography.authenticationCode(
          secret, JoinProof.ofInviter(acceptance, to: request, of: world.fleet.id, exporter: exporter))
          == acceptance.proof
      else { return world.violate("join", "an answer without the secret") }
      admitted()
    // What the inviting node has lost, it does not know.
    case .joinRefused(.busy): break
    case .joinRefused(.wrongCode) where world.nodes[World.inviter].lineage > 0,
      .joinRefused(.used) where world.nodes[World.inviter].lineage > 0:
      node.invitation = nil
    // Clocks jump by years.
    case .joinRefused(.expired): node.invitation = nil
    case .joinRefused(let refusal): world.violate("join", "refused: \(refusal)")
    default: break
    }
  }

  private func admitted() {
    let authority = Authority(
      root: world.fleet.root.publicKey, statements: statements, limit: world.plan.statementLimit,
      hash: FakeCryptography.hash)
    guard authority.member(of: node.key.publicKey) != nil else {
      return world.violate("join", "admitted without showing the statement")
    }
    node.join = nil
    world.count(.joined)
    world.enter(node, statements)
  }

  func closed(_ connection: UInt64) {
    node.join = nil
    if !node.isMember { world.queue.put(.join(slot: node.slot), at: world.clock + 500) }
  }
}

extension World {
  /// The founders' directories, each knowing its own membership and those of the ones before it. The first are admins.
  func found() {
    for node in nodes.prefix(plan.founders) {
      let role = node.slot < plan.admins ? Authority.adminRole : Fleet.memberRole
      enter(node, fleet.membership(of: node.key.publicKey, user: node.user, role: role))
    }
    for node in nodes.dropFirst(plan.founders) {
      queue.put(.join(slot: node.slot), at: random.between(100...options.troubledMilliseconds * 2 / 3))
    }
  }

  /// A directory that was set up, and its first start.
  func enter(_ node: SimulatedNode, _ statements: [Statement]) {
    node.isMember = true
    do {
      let store = try openStore(of: node)
      try store.transact(isBacklog: false) { transaction in
        for statement in statements { try transaction.add(statement) }
        for pattern in plan.subscriptions[node.slot] { try transaction.subscribe(pattern) }
        if roomLife != nil { try transaction.subscribe("conversation=*") }
      }
    } catch {
      return violate("I15", "node \(node.slot) cannot be set up: \(error)")
    }
    for statement in statements { node.directory.book.statements[statement.id] = statement }
    node.start(in: self)
  }

  func tryToJoin(_ slot: Int) {
    let node = nodes[slot]
    let isAsking = node.join.map { clock < $0.startedAt + JoinClient.patienceMilliseconds } ?? false
    guard !node.isMember, !isAsking else { return }
    let client = JoinClient(world: self, node: node)
    guard isInvited(node), connect(slot, client.life, to: World.inviter) != nil else {
      return queue.put(.join(slot: slot), at: clock + 1_000)
    }
    node.join = client
    // Who gets no answer asks again.
    queue.put(.join(slot: slot), at: clock + JoinClient.patienceMilliseconds + 1)
  }

  /// The admin among the founders who lets others in.
  static let inviter = 0

  /// Asks for an invitation where there is none yet.
  private func isInvited(_ node: SimulatedNode) -> Bool {
    if node.invitation?.invitation != nil { return true }
    let given = GivenInvitation()
    node.invitation = given
    let draft = InvitationDraft(
      user: node.user, role: Fleet.memberRole, profile: ValueMap(),
      validMilliseconds: InvitationDraft.longestMilliseconds)
    nodes[World.inviter].process?.put(.call { engine in given.put(try? engine.invite(draft)) })
    return false
  }
}
