import Engine
import Replication

/// What a seed makes of the world before anything happens in it.
struct Plan {
  let nodeCount: Int
  /// Members from the start; the others join later.
  let founders: Int
  let partitions: [PartitionName]
  /// What each slot subscribes to at its start.
  let subscriptions: [[Text]]
  /// Who can dial whom.
  let dialTargets: [[Int]]
  let faults: Set<Fault>
  let mesh: MeshConfiguration
  /// Documents per partition.
  let documents: Int
  /// One way, in milliseconds.
  let latency: ClosedRange<UInt64>
  /// Between two things that people do, and between two faults.
  let actionInterval: UInt64
  let faultInterval: UInt64

  /// How much a node commits at once: little, so that a turn commits more than once now and then.
  let limits: CommitLimits
  let changesBetweenMarks: UInt64
  /// The shipped store on a simulated disk, or its fast stand-in.
  let usesDisk: Bool

  /// Two that share a prefix, one that a rule reserves for a user, one of nobody's.
  static let names: [Text] = ["alpha", "alpine", "user=u0", "beta"]

  init(_ options: SimulationOptions, _ random: inout SimulationRandom) {
    nodeCount = random.between(options.nodes)
    founders = nodeCount > 2 && random.chance(40) ? nodeCount - 1 : nodeCount
    partitions = Plan.names.prefix(random.between(options.partitions)).compactMap { try? PartitionName($0) }
    let names = partitions
    subscriptions = (0..<nodeCount).map { _ in Plan.subscriptions(names, &random) }
    dialTargets = Plan.topology(nodeCount, &random)
    let isWorldOfForks = options.faults == nil && random.chance(15)
    faults = options.faults ?? (isWorldOfForks ? Plan.forkingFaults : Plan.faults(&random))
    mesh = Plan.configuration(&random)
    documents = random.between(1...5)
    latency = 0...random.between(1...40)
    var limits = CommitLimits()
    (limits.changes, limits.writes, limits.backlogChanges) = (40, 40, 20)
    self.limits = limits
    changesBetweenMarks = random.pick([1, 10, 1_000]) ?? 10
    usesDisk = options.usesDisk ?? random.chance(50)
    actionInterval = random.between(100...1_500)
    faultInterval = isWorldOfForks ? random.between(300...1_200) : random.between(700...4_000)
  }

  /// Copies that come back all the time, and what keeps their histories apart for a while.
  private static let forkingFaults: Set<Fault> = [.clonedDirectory, .rolledBack, .cut, .split, .crash, .largePayload]

  /// Each fault in a third of the runs; those that break the promise of one history per replica in few.
  private static func faults(_ random: inout SimulationRandom) -> Set<Fault> {
    Set(
      Fault.allCases.filter { fault in
        switch fault {
        case .clonedDirectory, .rolledBack: random.chance(12)
        case .liar, .rightChanged: random.chance(20)
        case .restoredCopy: random.chance(15)
        default: random.chance(35)
        }
      })
  }

  private static func subscriptions(_ names: [PartitionName], _ random: inout SimulationRandom) -> [Text] {
    switch random.below(10) {
    case 0..<5: return ["*"]
    case 5..<7: return ["al*"]
    default: return names.filter { _ in random.chance(60) }.map(\.text)
    }
  }

  private static func configuration(_ random: inout SimulationRandom) -> MeshConfiguration {
    var mesh = MeshConfiguration()
    mesh.antiEntropyMilliseconds = random.pick([3_000, 10_000, 30_000]) ?? 30_000
    mesh.relayMilliseconds = random.pick([0, 40, 200]) ?? 40
    mesh.catchUpSilenceMilliseconds = random.pick([1_000, 5_000]) ?? 5_000
    mesh.loadByteLimit = random.pick([8_000, 20_000, 1_048_576]) ?? 8_000
    return mesh
  }

  /// Everyone to everyone, two networks with relays in both, a chain, or a star; connected either way.
  private static func topology(_ count: Int, _ random: inout SimulationRandom) -> [[Int]] {
    var pairs: [(Int, Int)] = []
    switch random.below(4) {
    case 0:
      for a in 0..<count { for b in 0..<a { pairs.append((a, b)) } }
    case 1:
      let relay = random.below(count)
      let isEast = (0..<count).map { _ in random.chance(50) }
      for a in 0..<count {
        for b in 0..<a where isEast[a] == isEast[b] || a == relay || b == relay { pairs.append((a, b)) }
      }
    case 2: pairs = (1..<count).map { ($0, $0 - 1) }
    default: pairs = (1..<count).map { ($0, 0) }
    }
    var targets = [[Int]](repeating: [], count: count)
    for (a, b) in pairs {
      let ways = random.below(4)
      if ways != 0 { targets[a].append(b) }
      if ways != 1 { targets[b].append(a) }
    }
    return targets
  }
}
