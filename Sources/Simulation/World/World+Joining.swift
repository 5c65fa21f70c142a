import Engine
import Replication
import Wire

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

  func opened(_ connection: UInt64, _ exporter: Digest) {
    var request = JoinRequest(
      fleet: world.fleet.id, device: node.key.publicKey, user: node.user, label: "joined", role: "member",
      profile: ValueMap())
    request.proof = world.fleet.admission.sign(request.signedBytes(exporter: exporter))
    _ = world.send(MessageCodec.encode(.joinRequest(request)), on: connection, from: 0)
  }

  func received(_ frame: [UInt8], _ connection: UInt64) {
    switch try? MessageCodec.decode(frame[...]) {
    case .statements(let encoded): statements += encoded.compactMap(FakeCryptography.statement)
    case .joinAccepted: admitted()
    case .joinRefused(let refusal): world.violate("join", "refused: \(refusal)")
    default: break
    }
  }

  private func admitted() {
    let authority = Authority(root: world.fleet.root.publicKey, statements: statements, hash: FakeCryptography.hash)
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
  /// The founders' directories, each knowing its own membership and those of the ones before it.
  func found() {
    var known = fleet.statements
    for node in nodes.prefix(plan.founders) {
      if let membership = fleet.membership(of: node.key.publicKey, user: node.user, sequence: UInt64(node.slot) + 1) {
        known.append(membership)
      }
      enter(node, known)
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
    let hosts = nodes.indices.filter { dialTargets[slot].contains($0) || dialTargets[$0].contains(slot) }
    let client = JoinClient(world: self, node: node)
    guard let host = random.pick(hosts), connect(slot, client.life, to: host) != nil else {
      return queue.put(.join(slot: slot), at: clock + 1_000)
    }
    node.join = client
    // Who gets no answer asks again.
    queue.put(.join(slot: slot), at: clock + JoinClient.patienceMilliseconds + 1)
  }
}
