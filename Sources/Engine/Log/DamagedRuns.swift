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
  /// Those of which a run is known to be damaged, by partition.
  private(set) var chains: [PartitionID: Set<ReplicaID>] = [:]
  /// Chains with more damaged runs than are remembered: when the log was read over last, and since then.
  private var beyond: (before: Set<Chain>, since: Set<Chain>) = ([], [])
  /// The log is to be read over soon: all that was remembered of a chain is mended, and there is more.
  private var isDemanding = false
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
  /// Nothing is known to be damaged, remembered or not.
  var isWhole: Bool { chains.isEmpty }
  /// So many runs are damaged at the least.
  package var leastCount: Int { max(count, chains.values.reduce(0) { $0 + $1.count }) }

  /// Answers whether that is new.
  @discardableResult
  mutating func note(_ run: DamagedRun, in partition: PartitionID) -> Bool {
    let chain = Chain(partition: partition, replica: run.replica)
    // Also where the run itself is one too many: nobody is to believe that the chain is whole here.
    if chains[chain.partition, default: []].insert(chain.replica).inserted { moved.insert(chain.partition) }
    guard runs[chain]?.contains(run) != true else { return false }
    guard count < DamagedRuns.limit else {
      beyond.since.insert(chain)
      return false
    }
    runs[chain, default: []].insert(run)
    count += 1
    return true
  }

  /// All of the log was read over: nothing is beyond but what was met since that began.
  mutating func noteScrubbed() {
    let whole = beyond.before.subtracting(beyond.since).filter { runs[$0] == nil }
    beyond = (beyond.since, [])
    for chain in whole { release(chain) }
    if count < DamagedRuns.limit, beyond.before.contains(where: { runs[$0] == nil }) { isDemanding = true }
  }

  mutating func takeDemand() -> Bool {
    defer { isDemanding = false }
    return isDemanding
  }

  /// Those that arrived in a part of the log.
  func known(after start: Int64, through end: Int64) -> [(run: DamagedRun, chain: Chain)] {
    guard count > 0 else { return [] }
    return runs.sorted { $0.key < $1.key }.flatMap { chain, runs in
      runs.filter { $0.arrival > start && $0.arrival <= end }.sorted { $0.arrival < $1.arrival }.map { ($0, chain) }
    }
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

  /// Its payload, which may be large, waits on disk.
  mutating func take(_ run: IncomingRun, at place: DamagedRun) {
    guard arrived[place.arrival] == nil, arrivedByteCount + run.encoded.count <= DamagedRuns.arrivedByteLimit else {
      return
    }
    arrived[place.arrival] = run.withoutDocuments
    arrivedByteCount += run.encoded.count
  }

  /// Of a chain, the highest first: what follows a run tells whether it is the one that was there.
  func candidates(_ chain: Chain) -> [(run: DamagedRun, arrived: IncomingRun)] {
    (runs[chain] ?? []).sorted { $0.last > $1.last }.compactMap { run in
      arrived[run.arrival].map { (run, $0) }
    }
  }

  /// - Parameter cameAnew: false where the disk gives it again by itself.
  mutating func noteMended(_ run: DamagedRun, _ chain: Chain, cameAnew: Bool = true) {
    if cameAnew { mendedCount += 1 }
    drop(run)
    // Of other chains, too: their contexts may refer to this run's.
    asked = []
    askSoon()
    guard runs[chain]?.remove(run) != nil else { return }
    count -= 1
    if count == 0, !(beyond.before.isEmpty && beyond.since.isEmpty) { isDemanding = true }
    guard runs[chain]?.isEmpty == true else { return }
    (runs[chain], asks[chain]) = (nil, nil)
    guard !beyond.before.contains(chain), !beyond.since.contains(chain) else {
      isDemanding = true
      return
    }
    release(chain)
  }

  private mutating func release(_ chain: Chain) {
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

  fileprivate var withoutDocuments: IncomingRun {
    IncomingRun(
      replica: replica, first: first, hashBefore: hashBefore, contextDigest: contextDigest, context: context,
      hashes: hashes, facts: facts, elementDots: elementDots, signer: signer, encoded: encoded,
      documents: RunDocuments())
  }
}
