import Engine
import Replication
import Wire

/// What a world with a flood is about, and the low allowances that make it short. Drawn apart, so that all else is what it was.
struct FloodPlan {
  /// Statements of one device in one scope that count for all but the flooder: far more than honest devices of a world say.
  static let statementLimit = 48
  /// Chains of one device where nobody else writes: twice as many as honest people of a world come to.
  static let chainLimit = 48
  /// The flooder signs so many statements.
  static let signedLimit = 3 * statementLimit
  static let percent = 8
  static let interval: ClosedRange<UInt64> = 200...900

  /// Partitions in which nobody else writes.
  let places: [PartitionName]
  fileprivate let random: SimulationRandom

  init?(_ options: SimulationOptions, seed: UInt64) {
    var random = SimulationRandom(seed: SimulationRandom.mix(seed &+ 0x666c_6f6f_6421))
    let isDrawn = random.chance(FloodPlan.percent) && options.faults == nil && options.builds == nil
    guard options.floods ?? isDrawn else { return nil }
    // Who may write little may write in these where anybody may.
    places = (0..<4).compactMap { try? PartitionName(Text("alpi-r\($0)")) }
    self.random = random
  }
}

/// A member whose key signs without end: statements, replica ids, and chains under all of them. Its engine keeps to no
/// allowance, and tells everyone whom it meets all that there is.
struct Flood {
  var random: SimulationRandom
  private let key: FakeKey
  private let places: [PartitionName]
  private(set) var signed = 0
  private var replicas: [ReplicaID] = []
  private var begun: Set<ChainIdentity> = []

  init(_ plan: FloodPlan, _ key: FakeKey) {
    (random, self.key, places) = (plan.random, key, plan.places)
  }

  // MARK: Statements

  /// The next ones of a chain that goes on from the last one, or from an early one, so that what was said since is pushed out.
  mutating func statements(_ state: EngineState) -> [Statement] {
    let authority = state.mesh.authority
    guard signed < FloodPlan.signedLimit, let membership = authority.member(of: key.publicKey)?.id else { return [] }
    let own = authority.fleetStatements.filter { $0.issuer == key.publicKey }.sorted { $0.sequence < $1.sequence }
    var last = random.chance(25) ? random.pick(Array(own.prefix(12))) : own.last
    let declares = random.chance(65)
    return (0..<random.between(1...6)).compactMap { _ in
      let body = declares ? declaration(under: membership) : grant()
      guard let statement = key.statement(state.identity.fleet, body, after: last) else { return nil }
      signed += 1
      last = statement
      return statement
    }
  }

  private mutating func declaration(under membership: Digest) -> Statement.Body {
    let nonce = UUIDValue(high: random.next(), low: random.next())
    let replica = ReplicaID.derived(device: key.device, nonce: nonce, FakeCryptography.hash)
    replicas.append(replica)
    return .replica(Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership))
  }

  /// It may grant nothing, and says so all the same.
  private mutating func grant() -> Statement.Body {
    .grant(Statement.Grant(subject: .everyone, level: .read, pattern: Text("x\(random.next())")))
  }

  // MARK: Chains

  /// First runs of chains that there were not yet: most where nobody else writes, some where others do.
  mutating func runs(_ state: EngineState, others: [PartitionName]) -> [(PartitionName, DeliveredRun)] {
    let authority = state.mesh.authority
    let declared = replicas.filter { authority.signer(of: $0) == key.publicKey }
    return (0..<random.between(1...12)).compactMap { _ -> (PartitionName, DeliveredRun)? in
      guard let replica = random.pick(declared), let name = random.pick(random.chance(75) ? places : others) else {
        return nil
      }
      let chain = ChainIdentity(
        fleet: state.identity.fleet, partition: state.identity.id(of: name), replica: replica)
      guard begun.insert(chain).inserted else { return nil }
      let seen = random.chance(50) ? state.mesh.partitions[chain.partition]?.log.accepted : nil
      return run(chain, name, seen: seen ?? VersionVector(), authority).map { (name, $0) }
    }
  }

  private mutating func run(
    _ chain: ChainIdentity, _ name: PartitionName, seen context: VersionVector, _ authority: Authority
  ) -> DeliveredRun? {
    var builder = RunBuilder(
      chain: chain, after: 0, hashBefore: chain.genesis(FakeCryptography.hash), context: context,
      hash: FakeCryptography.hash)
    append(to: &builder)
    let decoder = FrameDecoder(fleet: chain.fleet, FakeCryptography.cryptography(of: key))
    let encoded = RunCodec.encode(builder.close(sign: key.sign))
    return try? decoder.inspect(encoded, context: context, in: name, under: authority) { _ in [] }.delivered
  }

  private mutating func append(to builder: inout RunBuilder) {
    let write = DocumentWrite(
      collection: "c", id: .int(Int64(1_000 + random.below(1_000_000))), kind: .create, generation: 1,
      operations: [Operation(.set, [.key("a")], value: .int(Int64(random.below(1_000))))])
    let payload = PayloadEncoder.encode([write], dot: builder.nextDot)
    let stamp = HybridTimestamp(milliseconds: UInt64(World.epoch), counter: 0)
    let wall = WallTime(milliseconds: World.epoch)
    let header = ChangeHeader(
      sequence: builder.nextDot.sequence, timestamp: stamp, wall: wall, payloadByteCount: 0, payloadHash: .zero,
      keyHashes: [])
    guard
      let change = try? Change.plain(header, payload: payload, chain: builder.chain, FakeCryptography.hash).change
    else { return }
    builder.append(payload: payload, keyHashes: change.header.keyHashes, timestamp: stamp, wall: wall)
  }
}

extension World {
  /// The flooder's key is used somewhere: what it signed is in its engine from then on.
  func floodOn() {
    guard isTroubled, let slot = nodes.firstIndex(where: { $0.flood != nil }) else { return }
    queue.put(.floodOn, at: clock + (nodes[slot].flood?.random.between(FloodPlan.interval) ?? 0))
    guard let process = nodes[slot].process else { return }
    let state = process.engine.state
    let said = nodes[slot].flood?.statements(state) ?? []
    count(.signedBeyond, times: said.count { _ in (nodes[slot].flood?.signed ?? 0) > FloodPlan.statementLimit })
    if !said.isEmpty { process.put(.call { $0.add(said) }) }
    let open = plan.partitions.filter { oracle.known.mayWrite(nodes[slot], $0) }
    for (name, run) in nodes[slot].flood?.runs(state, others: open) ?? [] { process.put(.ledgerRun(name, run)) }
  }
}
