import Replication
import Wire

/// Reads the run log for sending and for judging forks.
struct LogReader {
  private let engine: EngineState
  private let reader: RunReader
  /// Is told of rows that do not read, and of which partition they are.
  private let note: (any StoreFailure, PartitionID) -> Void

  init(_ state: EngineState, note: @escaping (any StoreFailure, PartitionID) -> Void = { _, _ in }) {
    (engine, reader) = (state, RunReader(state.identity))
    self.note = note
  }

  private var store: any LogStore { engine.store }

  private func chain(_ partition: PartitionID, _ replica: ReplicaID) -> ChainIdentity {
    ChainIdentity(fleet: reader.fleet, partition: partition, replica: replica)
  }

  /// Runs that lie above `have`, over all chains in order of arrival: one seek per lagging chain, then a merge by
  /// arrival. A chain ends before a run that is not as it was written, and others before what has seen that; and where it
  /// ends for others, ``PartitionLog/shownEnd(of:)``.
  func runs(
    _ partition: PartitionID, lackedBy have: VersionVector, byteLimit: Int
  ) throws -> (runs: [LoggedRun], hasMore: Bool) {
    guard let state = engine.mesh.ledger.partitions[partition] else { return ([], false) }
    let behind = state.log.clipped.exceeding(have).map(\.replica)
    var cuts = LogCuts()
    // Of the others what does not read is met below.
    for (replica, end) in state.log.incompleteEnds where !behind.contains(replica) { cuts.cut(replica, above: end) }
    guard behind.count <= LogReader.fewChains else {
      return try runs(of: behind, partition, state, have, &cuts, byteLimit: byteLimit)
    }
    var lagging = try laggingChains(behind, partition, state, have, byteLimit, &cuts)
    var found: [LoggedRun] = []
    var bytes = 0
    while let next = lagging.indices.min(by: { lagging[$0].arrival < lagging[$1].arrival }),
      let run = lagging[next].runs.first
    {
      guard bytes < byteLimit else { return (found, true) }
      guard cuts.admits(run, of: lagging[next].chain.replica) else {
        lagging[next].runs = []
        continue
      }
      lagging[next].runs.removeFirst()
      let replica = lagging[next].chain.replica
      guard let logged = try logged(run, replica, partition, state) else {
        cuts.cut(replica, above: run.first - 1)
        lagging[next].runs = []
        continue
      }
      found.append(logged)
      bytes += logged.byteCount
      // What this chain has beyond what was read must not be overtaken by later arrivals of others.
      if lagging[next].runs.isEmpty, run.last < lagging[next].end {
        lagging[next].runs = try readable(
          lagging[next].chain, after: run.last, byteLimit: lagging[next].step, &cuts
        ).prefix { $0.first <= lagging[next].shownEnd }
      }
    }
    return (found, false)
  }

  /// So many are read ahead, each with more than its share of what is answered; of more the index tells which runs those
  /// are, and they are read one by one.
  private static let fewChains = 16

  /// The same of many chains.
  private func runs(
    of behind: [ReplicaID], _ partition: PartitionID, _ state: PartitionState, _ have: VersionVector,
    _ cuts: inout LogCuts, byteLimit: Int
  ) throws -> (runs: [LoggedRun], hasMore: Bool) {
    var merge = ArrivalMerge { try store.places(of: chain(partition, $0), after: $1, limit: $2) }
    for replica in behind { try merge.add(replica, after: have.sequence(of: replica)) }
    var found: [LoggedRun] = []
    var bytes = 0
    while let next = try merge.next() {
      guard bytes < byteLimit else { return (found, true) }
      guard !cuts.isCut(next.replica) else { continue }
      let place = chain(partition, next.replica)
      guard let read = try intact(partition, { try store.run(at: next.place, of: place) }) else {
        cuts.cut(
          next.replica,
          above: found.last { $0.replica == next.replica }?.last ?? have.sequence(of: next.replica))
        continue
      }
      guard let run = read else { throw DamagedLog("a run that the index names is not there") }
      guard run.first <= state.log.shownEnd(of: next.replica) else { continue }
      guard cuts.admits(run, of: next.replica) else { continue }
      guard let logged = try logged(run, next.replica, partition, state) else {
        cuts.cut(next.replica, above: run.first - 1)
        continue
      }
      found.append(logged)
      bytes += logged.byteCount
    }
    return (found, false)
  }

  /// What of a chain reads: up to a run that does not, where it is cut.
  private func readable(
    _ chain: ChainIdentity, after sequence: UInt64, byteLimit: Int, _ cuts: inout LogCuts
  ) throws -> [LogRun] {
    let all = try intact(chain.partition) { try store.runs(of: chain, after: sequence, byteLimit: byteLimit) }
    if let all { return all }
    var found: [LogRun] = []
    var bytes = 0
    for place in try store.places(of: chain, after: sequence, limit: LogReader.placeLimit) where bytes < byteLimit {
      guard let run = try intact(chain.partition, { try store.run(at: place, of: chain) }) ?? nil else {
        cuts.cut(chain.replica, above: found.last?.last ?? sequence)
        break
      }
      found.append(run)
      bytes += run.body.count
    }
    return found
  }

  /// Looked for before a run that does not read.
  private static let placeLimit = 1_024

  /// Nil where one row does not read, which is noted; `run`: the one of which it is, where that is known.
  private func intact<Answer>(
    _ partition: PartitionID, of run: @autoclosure () -> DamagedRun? = nil, _ read: () throws -> Answer
  ) throws -> Answer? {
    do {
      return try read()
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      note(DamagedLog.failure(failure, of: run()), partition)
      return nil
    }
  }

  private struct LaggingChain {
    let chain: ChainIdentity
    let end: UInt64
    let shownEnd: UInt64
    /// Bytes that are read of it at once.
    let step: Int
    /// Read and not yet taken.
    var runs: ArraySlice<LogRun>

    var arrival: Int64 { runs.first?.arrival ?? .max }
  }

  private func laggingChains(
    _ behind: [ReplicaID], _ partition: PartitionID, _ state: PartitionState, _ have: VersionVector, _ byteLimit: Int,
    _ cuts: inout LogCuts
  ) throws -> [LaggingChain] {
    let step = max(engine.options.leastReadByteCount, byteLimit / max(behind.count, 1))
    var chains: [LaggingChain] = []
    for replica in behind {
      let chain = chain(partition, replica)
      let runs = try readable(chain, after: have.sequence(of: replica), byteLimit: step, &cuts)
      let shownEnd = state.log.shownEnd(of: replica)
      chains.append(
        LaggingChain(
          chain: chain, end: state.log.received.sequence(of: replica), shownEnd: shownEnd, step: step,
          runs: runs.prefix { $0.first <= shownEnd }))
    }
    return chains
  }

  /// Nil where it does not read.
  private func logged(
    _ run: LogRun, _ replica: ReplicaID, _ partition: PartitionID, _ state: PartitionState
  ) throws -> LoggedRun? {
    try intact(partition, of: DamagedRun(run, of: replica)) { try whole(run, replica, partition, state) }
  }

  private func whole(
    _ run: LogRun, _ replica: ReplicaID, _ partition: PartitionID, _ state: PartitionState
  ) throws -> LoggedRun {
    // Only forked chains have runs of several branches; decoding tells which. And nothing else tells of a row without a sum
    // whether its bytes are a run: a peer ends the session over one that is none.
    let isForked = state.log.forkPoints[replica] != nil
    let decoded = isForked || !run.hasSum ? try reader.decode(run, in: partition) : nil
    let hashAtLast = isForked ? decoded?.hashAtLast : nil
    return LoggedRun(
      replica: replica, first: run.first, last: run.last, hashBefore: try RunCodec.hashBefore(of: run.body[...]),
      hashAtLast: hashAtLast, context: run.context, encoded: run.body[...], apart: try apart(run, replica))
  }

  private func apart(_ run: LogRun, _ replica: ReplicaID) throws -> ApartPayload? {
    guard run.first == run.last, let hash = try RunCodec.apartPayload(of: run.body[...]) else { return nil }
    guard let payload = try store.intactPayload(hash) else { throw DamagedPayload(run: DamagedRun(run, of: replica)) }
    return ApartPayload(hash: hash, bytes: payload[...])
  }

  /// What ``Mesh/Event/chainLoaded(_:_:_:_:)`` says for this purpose, without contexts.
  func summaries(
    _ partition: PartitionID, _ replica: ReplicaID, from first: UInt64, for purpose: ChainPurpose
  ) throws -> [RunSummary] {
    guard let state = engine.mesh.ledger.partitions[partition] else { return [] }
    switch purpose {
    case .probe: return try milestones(state, replica)
    case .answer where state.log.isUnfolded(replica): return try milestones(state, replica)
    case .answer(_, let probe):
      let parting = try parting(state, replica, from: probe.positions)
      let others = try milestones(state, replica).filter { run in !parting.contains { $0.first == run.first } }
      return (parting + others).sorted { $0.first < $1.first }
    case .unfold, .wholeAnswer, .handOver:
      return try summaries(partition, replica, from: first)
    }
  }

  /// Stored runs of a chain that reach `first` or above, ascending, of all branches, without contexts. Those that do not read are
  /// left out.
  func summaries(_ partition: PartitionID, _ replica: ReplicaID, from first: UInt64) throws -> [RunSummary] {
    guard let name = engine.look(at: partition, \.name) else { return [] }
    let (runs, unread) = try reader.headers(
      of: chain(partition, replica), after: first - 1, name, engine.mesh.ledger.authority, contexts: false, in: store)
    for failure in unread { note(failure, partition) }
    return runs
  }

  /// Those of these runs that are meant; bodies of others are not read.
  ///
  /// - Throws: also where one does not read.
  func summaries(
    _ partition: PartitionID, _ replica: ReplicaID, from first: UInt64, where isMeant: (RunPlace) -> Bool
  ) throws -> [RunSummary] {
    guard let name = engine.look(at: partition, \.name) else { return [] }
    let chain = chain(partition, replica)
    var (found, places): ([RunSummary], [RunPlace]) = ([], [])
    repeat {
      places = try store.places(of: chain, after: places.last?.last ?? first - 1, limit: LogReader.placeLimit)
      for place in places where isMeant(place) { found.append(try summary(at: place, of: chain, name)) }
    } while !places.isEmpty
    return found
  }

  private func summary(at place: RunPlace, of chain: ChainIdentity, _ name: PartitionName) throws -> RunSummary {
    do {
      guard let body = try store.body(at: place, of: chain) else {
        throw DamagedLog("a run that the index names is not there")
      }
      let run = LogRun(
        arrival: place.arrival, first: place.last, last: place.last, context: VersionVector(), body: body)
      return try reader.summary(run, chain.partition, name, engine.mesh.ledger.authority)
    } catch let failure where DamagedLog.isOfOneRow(failure) {
      throw DamagedLog.failure(failure, of: store.damagedRun(at: place, of: chain))
    }
  }

  /// Runs of a chain's trunk, the last one and others ever wider apart towards its start, ascending. Those that do not read are
  /// left out.
  private func milestones(_ state: PartitionState, _ replica: ReplicaID) throws -> [RunSummary] {
    var (found, distance): ([RunSummary], UInt64) = ([], 0)
    let end = state.log.trunk(of: replica).sequence
    while distance < end {
      if let run = try run(at: end - distance, of: replica, state), run.last < found.last?.first ?? .max {
        found.append(run)
      }
      distance = max(1, distance * 2)
    }
    return found.reversed()
  }

  /// Where a chain that memory has as its trunk alone parts from what a peer named: the run with the highest change that he has as
  /// well, and the one behind it; the first, where he has none. Where that one does not read, all that follow.
  private func parting(
    _ state: PartitionState, _ replica: ReplicaID, from positions: [ChainPosition]
  ) throws -> [RunSummary] {
    let end = state.log.trunk(of: replica).sequence
    let named = positions.filter { 1...max(1, end) ~= $0.sequence }.sorted { $0.sequence > $1.sequence }
    var common: RunSummary?
    for position in named where common == nil {
      let run = try run(at: position.sequence, of: replica, state)
      if run?.hash(at: position.sequence)?.tip == position.tip { common = run }
    }
    let next = common.map { $0.last + 1 } ?? 1
    guard next <= end else { return common.map { [$0] } ?? [] }
    let behind = try run(at: next, of: replica, state).map { [$0] } ?? summaries(state.id, replica, from: next)
    return (common.map { [$0] } ?? []) + behind
  }

  /// The run that has this change; nil where it does not read. What it had seen is not looked at.
  private func run(at sequence: UInt64, of replica: ReplicaID, _ state: PartitionState) throws -> RunSummary? {
    let chain = chain(state.id, replica)
    guard let place = try store.places(of: chain, after: sequence - 1, limit: 1).first else { return nil }
    let summary = try intact(state.id, of: store.damagedRun(at: place, of: chain)) { () -> RunSummary? in
      guard let body = try store.body(at: place, of: chain) else { return nil }
      let run = LogRun(
        arrival: place.arrival, first: sequence, last: place.last, context: VersionVector(), body: body)
      return try reader.summary(run, state.id, state.name, engine.mesh.ledger.authority)
    }
    return summary ?? nil
  }

  /// What of a chain lies above a sequence, of all branches, as much as is shown at once: up to a run that does not read.
  func evidence(
    _ partition: PartitionID, _ replica: ReplicaID, above: UInt64
  ) throws -> (runs: [LoggedRun], hasMore: Bool) {
    guard let state = engine.mesh.ledger.partitions[partition] else { return ([], false) }
    let chain = chain(partition, replica)
    var (found, byteCount): ([LoggedRun], Int) = ([], 0)
    var cuts = LogCuts()
    for run in try readable(chain, after: above, byteLimit: LogReader.evidenceByteCount, &cuts) {
      // Payloads that travel apart count as well. Those that end alike stay together.
      if byteCount > LogReader.evidenceByteCount, found.last?.last != run.last { return (found, true) }
      guard let logged = try logged(run, replica, partition, state) else {
        cuts.cut(replica, above: run.first - 1)
        break
      }
      byteCount += logged.byteCount
      found.append(logged)
    }
    guard let end = found.last?.last, !cuts.isCut(replica) else { return (found, false) }
    return (found, try !store.places(of: chain, after: end, limit: 1).isEmpty)
  }

  /// Two such parts may stand before what comes up next: the second is asked for before the first is handed over.
  static let evidenceByteCount = 256 * 1024

  /// Where a chain ends before a change: what is there of it below. Nil where nothing is, or where it does not read.
  func end(of replica: ReplicaID, before first: UInt64, _ partition: PartitionID) throws -> ChainPosition? {
    guard first > 1 else { return nil }
    let runs = try store.runs(of: chain(partition, replica), after: first - 2, byteLimit: 0)
    guard let run = runs.first(where: { $0.last == first - 1 }) else { return nil }
    return ChainPosition(sequence: run.last, tip: try reader.decode(run, in: partition).hashAtLast.tip)
  }
}
