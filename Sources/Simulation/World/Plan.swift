import Engine
import Replication

/// What a seed makes of the world before anything happens in it.
struct Plan {
  let nodeCount: Int
  /// All are on one LAN, and are more than have links with one another.
  let isHarbour: Bool
  /// Members from the start; the others join later.
  let founders: Int
  let partitions: [PartitionName]
  /// Partitions that one member begins without end; none in most worlds.
  let flooded: [PartitionName]
  /// One member signs without end; nil in most worlds.
  let flood: FloodPlan?
  /// What each slot subscribes to at its start.
  let subscriptions: [[Text]]
  /// Who can dial whom.
  let dialTargets: [[Int]]
  let faults: Set<Fault>
  let mesh: MeshConfiguration
  /// The root's grants at the beginning.
  let rights: FoundingRights
  /// Documents of a partition.
  let documents: [Value]
  /// At most so many writes follow on one another.
  let writesAtOnce: Int
  /// One way, in milliseconds.
  let latency: ClosedRange<UInt64>
  /// Wall clocks show multiples of so many milliseconds: the coarser they are, the more writes have the same time.
  let clockStep: Int64
  /// Between two things that people do, and between two faults.
  let actionInterval: UInt64
  /// At the end of the faults nodes hear that the network has changed; otherwise they dial when their pauses are over.
  let isNetworkChangeTold: Bool
  let faultInterval: UInt64

  /// How much a node commits at once: little, so that a turn commits more than once now and then.
  let limits: CommitLimits
  let changesBetweenMarks: UInt64
  /// What a connection hands in before the engine has taken it up; above it nothing more is read.
  let intakeByteLimit: Int
  /// Bytes under way above which a connection takes no frame more.
  let queueByteLimit: Int
  /// Bytes that are read of one chain at once, at least.
  let leastReadByteCount: Int
  /// The largest values that people write.
  let largestByteCount: Int
  /// After all agree, so many times a connection, a wish, a right or a process changes, and all have to agree soon.
  let disturbances: Int
  /// How many copies of directories may come to run beside their originals.
  let cloneLimit: Int
  /// The first so many members are admins.
  let admins: Int
  /// Devices get memberships beside their first, with rights of their own.
  let hasFurtherMemberships: Bool
  /// The shipped store on a simulated disk, or its fast stand-in.
  let usesDisk: Bool

  /// Partitions of one device in a flooded world: twice as many as honest people there write in.
  static let floodedLimit = 16
  /// Of the flooded partitions honest people write in these, too.
  var visited: ArraySlice<PartitionName> { flooded.prefix(3) }

  /// Two that share a prefix, one that a rule reserves for a user, one of nobody's.
  static let names: [Text] = ["alpha", "alpine", "user=u0", "beta"]
  /// So many that a comparison goes through several at once.
  static let moreNames: [Text] = ["al1", "al2", "al3", "al4", "al5", "al6", "alphb"]
  /// Ids of every kind, with zero bytes in some.
  static let ids: [Value] = [
    .int(0), .string("a"), .string("a\u{0}"), .uuid(.zero), .string("a\u{0}b"), .string("\u{0}\u{ff}"), .int(-1),
  ]

  /// Somebody keeps to no allowance, and allowances are low.
  var isFlooded: Bool { !flooded.isEmpty || flood != nil }
  /// Statements of one device that count in one scope.
  var statementLimit: Int { mesh.statementLimit }

  init(_ options: SimulationOptions, seed: UInt64, _ random: inout SimulationRandom) {
    let nodes = options.nodes ?? Plan.nodes(seed)
    nodeCount = random.between(nodes)
    isHarbour = nodes == SimulationOptions.harbour
    founders = nodeCount > 2 && random.chance(40) ? nodeCount - 1 : nodeCount
    let isWide = options.faults == nil && random.chance(10)
    let names = isWide ? Plan.names + Plan.moreNames : Array(Plan.names.prefix(random.between(options.partitions)))
    partitions = names.compactMap { try? PartitionName($0) }
    subscriptions = (0..<nodeCount).map { [partitions] _ in Plan.subscriptions(partitions, &random) }
    dialTargets = isHarbour ? Plan.lan(nodeCount) : Plan.topology(nodeCount, &random)
    let kind = options.faults == nil ? Kind(random.below(100)) : .general
    faults = options.faults ?? kind.faults ?? Plan.faults(&random)
    let isFlooded = nodeCount > 2 && (options.isFlooded || kind == .flood)
    flooded = isFlooded ? (0..<60).compactMap { try? PartitionName(Text("al-f\($0)")) } : []
    var mesh = Plan.configuration(&random)
    if isFlooded { mesh.takes.partitions = Plan.floodedLimit }
    // Who lies says nothing that the others know to be a flood.
    flood = nodeCount > 2 && !faults.contains(.liar) ? FloodPlan(options, seed: seed) : nil
    if flood != nil { (mesh.statementLimit, mesh.takes.chains) = (FloodPlan.statementLimit, FloodPlan.chainLimit) }
    self.mesh = mesh
    rights = kind == .forks ? .open : random.pick([.open, .open, .open, .byUser, .byDevice]) ?? .open
    documents = Array(Plan.ids.shuffled(using: &random).prefix(random.pick([1, 1, 2, 3, 5]) ?? 1))
    writesAtOnce = random.pick([20, 20, 20, 60]) ?? 20
    latency = 0...random.between(1...40)
    clockStep = random.pick([1, 1, 50, 1_000]) ?? 1
    var limits = CommitLimits()
    (limits.changes, limits.writes, limits.backlogChanges) = (40, 40, 20)
    (limits.attendedChanges, limits.loadsOfOneTurn) = (15, 2)
    self.limits = limits
    changesBetweenMarks = random.pick([1, 10, 1_000]) ?? 10
    intakeByteLimit = random.pick([2_000, 20_000, 1_048_576]) ?? 20_000
    cloneLimit = kind == .forks || kind == .feuds ? 2 : 1
    queueByteLimit = random.pick([8 * 1024, 64 * 1024]) ?? 64 * 1024
    leastReadByteCount = random.pick([500, 4_000, 64 * 1024]) ?? 64 * 1024
    largestByteCount = random.pick([40_000, 40_000, 200_000]) ?? 40_000
    disturbances = random.below(4)
    isNetworkChangeTold = random.chance(70)
    usesDisk = options.usesDisk ?? (random.chance(50) || options.hasRelays == true)
    actionInterval = random.between(100...1_500)
    faultInterval = kind == .general ? random.between(700...4_000) : random.between(300...1_200)
    // Drawn apart, so that all else is what it was.
    var apart = random
    admins = nodeCount > 2 && faults.contains(.rightChanged) && apart.chance(40) ? 2 : 1
    hasFurtherMemberships = faults.contains(.rightChanged) && apart.chance(40)
  }

  /// What a world is about: some mistakes show only where one thing happens again and again.
  private enum Kind {
    case general, forks, rights, feuds, flood

    init(_ percent: Int) {
      switch percent {
      case 0..<17: self = .forks
      case 17..<34: self = .rights
      case 34..<46: self = .feuds
      case 96..<100: self = .flood
      default: self = .general
      }
    }

    /// Nil: the seed draws.
    var faults: Set<Fault>? {
      switch self {
      case .general, .flood: nil
      // Copies that come back, and what keeps their histories apart for a while.
      case .forks: [.clonedDirectory, .rolledBack, .cut, .split, .crash, .largePayload, .diskFull]
      // Which branch counts, and whether what was issued again does, is for rights to say.
      case .feuds: [.clonedDirectory, .rolledBack, .rightChanged, .cut, .split, .crash]
      case .rights: [.rightChanged, .cut, .split, .crash, .crashInCommit, .clockJump, .diskFull]
      }
    }
  }

  /// Each fault in a third of the runs; those that break the promise of one history per replica in few.
  private static func faults(_ random: inout SimulationRandom) -> Set<Fault> {
    Set(
      Fault.allCases.filter { fault in
        switch fault {
        case .clonedDirectory, .rolledBack: random.chance(12)
        case .liar: random.chance(30)
        case .rightChanged: random.chance(20)
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
    mesh.loadByteLimit = random.pick([1_000, 8_000, 1_048_576]) ?? 8_000
    mesh.statementWindowByteCount = random.pick([400, 1_048_576]) ?? 400
    mesh.holdings.compareMilliseconds = mesh.antiEntropyMilliseconds
    mesh.holdings.share = random.pick([1, 50]) ?? 50
    mesh.holdings.wordMilliseconds = random.pick([500, 10_000]) ?? 500
    mesh.holdings.askedMilliseconds = random.pick([100, 2_000]) ?? 100
    if random.chance(35) { (mesh.pingMilliseconds, mesh.deadMilliseconds) = (1_000, 3_500) }
    return mesh
  }

  /// Drawn apart, so that worlds of few nodes are what they were.
  private static func nodes(_ seed: UInt64) -> ClosedRange<Int> {
    var random = SimulationRandom(seed: SimulationRandom.mix(seed &+ 0x6861_7262))
    return random.chance(1) ? SimulationOptions.harbour : 2...6
  }

  /// All see one another.
  private static func lan(_ count: Int) -> [[Int]] {
    (0..<count).map { node in (0..<count).filter { $0 != node } }
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
