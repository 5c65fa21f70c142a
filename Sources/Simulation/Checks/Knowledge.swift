import Engine
import Replication
import Wire

/// What the onlooker knows, and judges from: what every store took, and what follows from that by rules of its own
/// (``PartitionVerdict``). Nothing of it rests on how the nodes merge, accept or permit.
///
/// What was worked out once is kept: runs by their bytes, rights by the set of statements, verdicts by both. Each is a
/// function of what it is kept by.
final class Knowledge {
  unowned let world: World
  var library: RunLibrary
  var payloads: [Digest: [UInt8]] = [:]
  private(set) var owners: [ReplicaID: PublicKey] = [:]
  /// What each declaration declared.
  private(set) var declarations: [Digest: ReplicaID] = [:]
  /// Devices of which the run made two, and the replicas that they write under.
  private var forkable: Set<PublicKey> = []
  /// A right was narrowed: what counted may fall.
  private(set) var wasNarrowed = false
  /// Devices that were ended, and those of them that are in other hands.
  private(set) var (ended, compromised): (Set<PublicKey>, Set<PublicKey>) = ([], [])
  /// When each node had drawn a replica id last.
  private var drawnAt: [Int: UInt64] = [:]
  private var rights: [Set<Digest>: JudgedRights] = [:]
  private var verdicts = VerdictShelf()

  /// Of sets of statements; one costs some ten kilobytes.
  private static let rightsLimit = 256

  init(_ world: World) {
    self.world = world
    library = RunLibrary(formats: world.options.builds?.later ?? .all)
  }

  // MARK: Who writes

  func expectForks(of node: SimulatedNode) { forkable.insert(node.key.publicKey) }
  func mayFork(_ replica: ReplicaID) -> Bool { owners[replica].map(forkable.contains) ?? false }

  func isHonest(_ replica: ReplicaID) -> Bool {
    guard let owner = owners[replica] else { return false }
    return !world.nodes.contains { !$0.isHonest && $0.key.publicKey == owner }
  }

  /// A store took it.
  func note(_ statement: Statement, at node: SimulatedNode) {
    noteEnd(statement, at: node)
    if case .replica(let declaration) = statement.body {
      (owners[declaration.replica], declarations[statement.id]) = (statement.issuer, declaration.replica)
    }
    if Knowledge.isNarrowing(statement), !world.fleet.isOfFounding(statement) { wasNarrowed = true }
    if isFull(of: statement.issuer, at: node) { wasNarrowed = true }
  }

  /// With as many statements as one device may say the fleet's scope is full: what the device declared may count no more, and
  /// no chain has a floor.
  func isFull(of issuer: PublicKey, at node: SimulatedNode) -> Bool {
    floods(issuer)
      && node.directory.book.statements.values.count { $0.issuer == issuer } >= world.plan.statementLimit
  }

  /// Its key signs without end.
  func floods(_ issuer: PublicKey) -> Bool {
    world.nodes.contains { $0.flood != nil && $0.key.publicKey == issuer }
  }

  /// Who is ended hears of that alone, whatever becomes of it later.
  private func noteEnd(_ statement: Statement, at node: SimulatedNode) {
    guard case .end(let end) = statement.body, case .membership(let id) = end.target,
      case .membership(let membership)? = node.directory.book.statements[id]?.body
    else { return }
    ended.insert(membership.device)
    if end.reason == .compromised { compromised.insert(membership.device) }
  }

  func isEnded(_ process: NodeProcess) -> Bool { ended.contains(process.node.key.publicKey) }

  static func isNarrowing(_ statement: Statement) -> Bool {
    switch statement.body {
    case .grant(let grant): grant.level < .write
    case .end, .removal: true
    default: false
    }
  }

  func observe(_ run: DecodedRun, _ context: VersionVector) -> ObservedRun {
    let changes = zip(run.changes, run.hashes).map { change, hash in
      let dot = Dot(replica: run.chain.replica, sequence: change.header.sequence)
      let payload = payloads[change.header.payloadHash].map { $0[...] } ?? change.payload
      let writes = (try? PayloadDecoder.decodeWrites(payload, dot: dot)) ?? []
      return ObservedChange(
        hash: hash, timestamp: change.header.timestamp.rawValue, own: ObservedChange.own(of: writes),
        origin: change.header.origin, writes: writes)
    }
    return ObservedRun(
      replica: run.chain.replica, first: run.first, hashBefore: run.hashBefore,
      context: NaivePosition.entries(of: context), changes: changes)
  }

  // MARK: What follows

  func rights(of statements: [Digest: Statement]) -> JudgedRights {
    let ids = Set(statements.keys)
    if let known = rights[ids] { return known }
    if rights.count > Knowledge.rightsLimit { rights = [:] }
    let made = JudgedRights(
      statements.values, root: world.fleet.root.publicKey, limit: world.plan.statementLimit)
    rights[ids] = made
    return made
  }

  /// C26: what is left of statements that one node and another have, once both have all of them.
  func set(of statements: [Statement]) -> Set<Digest> {
    let all = Dictionary(statements.map { ($0.id, $0) }) { first, _ in first }
    return world.plan.flood == nil ? Set(all.keys) : rights(of: all).rights.statements
  }

  /// The node need not have these: its own push them out (C26).
  func isNothing(_ lacking: [Statement], beside book: NodeBook) -> Bool {
    guard !lacking.isEmpty else { return true }
    return set(of: lacking + book.statements.values).isDisjoint(with: lacking.map(\.id))
  }

  /// What the statements that a node stores say.
  func rights(of node: SimulatedNode) -> JudgedRights {
    if let known = node.directory.book.rights { return known }
    let made = rights(of: node.directory.book.statements)
    node.directory.book.rights = made
    return made
  }

  func mayWrite(_ node: SimulatedNode, _ name: PartitionName) -> Bool {
    rights(of: node).level(of: node.key.publicKey, in: name.text) >= .write
  }

  func verdict(_ node: SimulatedNode, _ id: PartitionID, _ name: PartitionName) -> PartitionVerdict {
    let (rights, partition) = (rights(of: node), node.directory.book.partitions[id])
    return verdicts.verdict(id, rights, partition?.held ?? []) {
      PartitionVerdict(of: name.text, rights: rights.rights, runs: partition?.observed ?? []) { replica in
        ChainIdentity(fleet: world.fleet.id, partition: id, replica: replica).genesis(FakeCryptography.hash)
      }
    }
  }

  // MARK: Replica ids

  func noteDrawn(by node: SimulatedNode) { drawnAt[node.slot] = world.clock }

  /// Within that an id for another membership's right is not drawn yet, and not after it.
  func hasDrawnLately(_ node: SimulatedNode) -> Bool {
    drawnAt[node.slot].map { world.clock - $0 <= Knowledge.drawnMilliseconds } ?? false
  }

  private static let drawnMilliseconds: UInt64 = 60_000

  // MARK: Who holds what together

  func isOwed(_ name: PartitionName) -> Bool {
    guard world.plan.isFlooded else { return true }
    let id = world.fleet.partition(name)
    let spenders = flooders.union(copiedDevices.filter(hasSpentPlaces))
    return world.nodes.compactMap(\.process).contains { process in
      process.mesh.interest.wants(id, name: name)
        && process.mesh.partitions[id]?.log.accepted.entries.keys.contains { replica in
          owners[replica].map { !spenders.contains($0) } ?? true
        } ?? false
    }
  }

  private var flooders: Set<PublicKey> {
    Set(world.nodes.filter { $0.isFlooder || $0.flood != nil }.map(\.key.publicKey))
  }

  /// Each copy of a device leaves half of the allowance to what it does not know of: three of them may spend it together.
  private var copiedDevices: Set<PublicKey> {
    Set(Dictionary(grouping: world.nodes, by: \.key.publicKey).filter { $0.value.count > 1 }.keys)
  }

  /// Somebody who keeps to the limits holds so much of the device's that he takes no more of what it writes alone, which others may have taken before:
  /// they may differ in that for good (decision 30).
  private func hasSpentPlaces(_ device: PublicKey) -> Bool {
    // Nothing bounds what an admin writes.
    let isAdmin = world.nodes.contains { $0.slot < world.plan.admins && $0.key.publicKey == device }
    guard !isAdmin else { return false }
    let limits = world.plan.mesh.takes
    return world.nodes.contains { node in
      guard node.isHonest, !flooders.contains(node.key.publicKey) else { return false }
      let chains = node.directory.book.partitions.values.map { held in
        held.runs.keys.count { owners[$0] == device }
      }
      return chains.reduce(0, +) >= limits.chains || chains.count { $0 > 0 } >= limits.partitions
    }
  }

  /// Honest nodes that want the partition and may carry it, in groups that reach one another.
  func groups(wanting name: PartitionName) -> [[NodeProcess]] {
    let id = world.fleet.partition(name)
    var left = world.nodes.compactMap(\.process).filter { process in
      process.node.isHonest && process.mesh.interest.wants(id, name: name)
        && rights(of: process.node).level(of: process.node.key.publicKey, in: name.text) >= .carry
    }
    var groups: [[NodeProcess]] = []
    while let first = left.popLast() {
      var group = [first]
      var index = 0
      while index < group.count {
        let slot = group[index].node.slot
        group += left.filter { world.isLinked($0.node.slot, slot) }
        left.removeAll { world.isLinked($0.node.slot, slot) }
        index += 1
      }
      groups.append(group)
    }
    return groups
  }
}

/// One concern of the onlooker, with a book of its own where what it sees has to be remembered.
protocol Check {
  var known: Knowledge { get }
}

extension Check {
  var world: World { known.world }

  func rights(of node: SimulatedNode) -> JudgedRights { known.rights(of: node) }
  func mayFork(_ replica: ReplicaID) -> Bool { known.mayFork(replica) }
  func verdict(_ node: SimulatedNode, _ id: PartitionID, _ name: PartitionName) -> PartitionVerdict {
    known.verdict(node, id, name)
  }
}
