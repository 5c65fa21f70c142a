import Replication

/// Runs that the log does not give as they were written. Nobody is sent them; who has them is asked for them anew.
package struct DamagedRuns: Sendable {
  struct Chain: Hashable, Comparable {
    let partition: PartitionID
    let replica: ReplicaID

    static func < (a: Chain, b: Chain) -> Bool { (a.partition, a.replica) < (b.partition, b.replica) }
  }

  private struct Ask {
    let session: SessionID
    let at: MonotonicTime
    /// Milliseconds until the chain is asked for again.
    var wait: UInt64
  }

  private var runs: [Chain: Set<DamagedRun>] = [:]
  /// Those of which a run is known to be damaged, by partition. One whose runs are all beyond ``limit`` stays until a start.
  private(set) var chains: [PartitionID: Set<ReplicaID>] = [:]
  /// Partitions of which chains came to these, or left them.
  private var moved: Set<PartitionID> = []
  private var asks: [Chain: Ask] = [:]
  /// Devices that were asked since something was mended last: to meet them again is nothing new.
  private var asked: Set<DeviceID> = []
  /// Runs that came for those that are damaged, by the places of these, and wait until it is known that they are the same:
  /// what follows them is damaged, too.
  private var arrived: [Int64: IncomingRun] = [:]
  private var arrivedByteCount = 0
  package private(set) var count = 0
  /// Put right since the start.
  package private(set) var mendedCount = 0

  /// What is beyond is found again whenever it is met.
  package static let limit = 1_024
  package static let arrivedByteLimit = 4 * 1024 * 1024
  /// A peer reads its whole chain to answer, and sends it: the wait doubles with each answer that mended nothing, up to the
  /// longest one.
  package static let askAgainMilliseconds: UInt64 = 60_000
  package static let longestWaitMilliseconds: UInt64 = 3_600_000

  package var isEmpty: Bool { count == 0 }

  /// Answers whether that is new.
  @discardableResult
  mutating func note(_ run: DamagedRun, in partition: PartitionID) -> Bool {
    let chain = Chain(partition: partition, replica: run.replica)
    // Also where the run itself is one too many: nobody is to believe that the chain is whole here.
    if chains[chain.partition, default: []].insert(chain.replica).inserted { moved.insert(chain.partition) }
    guard count < DamagedRuns.limit, runs[chain, default: []].insert(run).inserted else { return false }
    count += 1
    return true
  }

  mutating func moveAll() { moved.formUnion(chains.keys) }

  /// Ascending; each once until chains of it move again.
  mutating func takeMoved() -> [PartitionID] {
    defer { moved = [] }
    return moved.sorted()
  }

  // MARK: Asking

  /// The lowest of each chain of which nobody was asked lately, and who was asked last.
  func due(_ now: MonotonicTime) -> [(chain: Chain, run: DamagedRun, last: SessionID?)] {
    runs.keys.sorted().compactMap { chain in
      let ask = asks[chain]
      guard ask.map({ now.millisecondsSince($0.at) >= $0.wait }) ?? true,
        let run = runs[chain]?.min(by: { $0.first < $1.first })
      else { return nil }
      return (chain, run, ask?.session)
    }
  }

  mutating func noteAsked(
    _ session: SessionID, of device: DeviceID? = nil, _ chain: Chain, _ now: MonotonicTime
  ) {
    if let device, asked.count < DamagedRuns.limit { asked.insert(device) }
    let wait = asks[chain].map { min($0.wait * 2, DamagedRuns.longestWaitMilliseconds) }
    asks[chain] = Ask(session: session, at: now, wait: wait ?? DamagedRuns.askAgainMilliseconds)
  }

  /// A device is met, and may have what others could not give.
  mutating func noteMet(_ device: DeviceID) { if !asked.contains(device) { askSoon() } }

  /// Something is otherwise than when chains were asked for in vain: the next asking is due as after the first one.
  private mutating func askSoon() {
    for chain in asks.keys { asks[chain]?.wait = DamagedRuns.askAgainMilliseconds }
  }

  func isAsked(_ chain: Chain) -> Bool { asks[chain] != nil }

  // MARK: What comes

  /// Those with the numbers of a run that came, in the order in which they lie: of several each is of another branch.
  func places(of run: IncomingRun, _ chain: Chain) -> [DamagedRun] {
    (runs[chain] ?? []).filter { $0.first == run.first && $0.last == run.last }.sorted { $0.arrival < $1.arrival }
  }

  mutating func take(_ run: IncomingRun, at place: DamagedRun) {
    guard arrived[place.arrival] == nil, arrivedByteCount + run.encoded.count <= DamagedRuns.arrivedByteLimit else {
      return
    }
    arrived[place.arrival] = run
    arrivedByteCount += run.encoded.count
  }

  /// Of a chain, the highest first: what follows a run tells whether it is the one that was there.
  func candidates(_ chain: Chain) -> [(run: DamagedRun, arrived: IncomingRun)] {
    (runs[chain] ?? []).sorted { $0.last > $1.last }.compactMap { run in
      arrived[run.arrival].map { (run, $0) }
    }
  }

  mutating func noteMended(_ run: DamagedRun, _ chain: Chain) {
    mendedCount += 1
    drop(run)
    // Of other chains, too: their contexts may refer to this run's.
    asked = []
    askSoon()
    guard runs[chain]?.remove(run) != nil else { return }
    count -= 1
    guard runs[chain]?.isEmpty == true else { return }
    (runs[chain], asks[chain]) = (nil, nil)
    chains[chain.partition]?.remove(chain.replica)
    if chains[chain.partition]?.isEmpty == true { chains[chain.partition] = nil }
    moved.insert(chain.partition)
  }

  /// It is not what was there.
  mutating func drop(_ run: DamagedRun) {
    guard let gone = arrived.removeValue(forKey: run.arrival) else { return }
    arrivedByteCount -= gone.encoded.count
  }
}

extension IncomingRun {
  var last: UInt64 { first + UInt64(clamping: hashes.count) - 1 }
}
