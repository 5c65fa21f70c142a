import struct Engine.DamagedLog
import Replication
import Storage
import Wire

/// Reads rows for the ledger from the log. Belongs to one thread.
final class PageReader {
  private let fleet: FleetID
  private let hash: HashFunction
  /// Of the runs that were read last: what the next one of their chain may refer to.
  private var contexts: [ChainKey: Known] = [:]
  private var contextEntries = 0

  private struct Known {
    let hash: Digest
    let context: VersionVector
  }

  /// Entries of the contexts that are remembered; then all are forgotten, and each chain's next one is sent whole.
  static let contextEntryLimit = 65_536

  init(fleet: FleetID, hash: @escaping HashFunction) { (self.fleet, self.hash) = (fleet, hash) }

  func forget() {
    contexts.removeAll()
    contextEntries = 0
  }

  func page(_ request: Forwarder.LoadRequest, from store: StoreReader) throws -> Forwarder.Page {
    var page = Forwarder.Page()
    let totals = try store.totals()
    page.held = LogAmount(changes: totals.changes, bytes: totals.logBytes)
    let room = try addStatements(request, store, &page)
    (page.runsEnd, page.documents) = (request.runsAfter, request.documents)
    guard room > 0, !request.isForAuthority else { return page }
    var marks = Marks()
    let lane = try Lane(request.filter, store)
    try addRuns(request, room, lane, store, &page, &marks)
    // Where it is looked for what the ledger does not take, they are sent alone.
    let isForMarks = !request.isSearching || page.batch.statements.isEmpty && page.batch.runs.isEmpty
    if page.isEnd, isForMarks { try addMarks(request, lane, store, &page, &marks) }
    page.batch.marks = marks.rows
    if page.isEnd {
      try DocumentPages(fleet: fleet, hash: hash, lane: lane).add(request, room, store, &page)
      try addKnowledge(request, store, &page)
    }
    return page
  }

  /// How far this relay knows what it has a word on. In a backlog nothing is said of that: there the words of others stay.
  private func addKnowledge(_ request: Forwarder.LoadRequest, _ store: StoreReader, _ page: inout Forwarder.Page) throws
  {
    for partition in page.batch.judgedPartitions {
      guard let number = try store.partitionNumber(partition) else { continue }
      for stored in try store.chains(of: number) {
        page.batch.heads.append(
          LedgerBatch.Head(
            chain: ChainKey(partition: partition, replica: stored.replica),
            highest: try store.highest(of: stored.number), isForked: stored.holdReason != nil))
      }
    }
    guard !page.batch.judgedPartitions.isEmpty else { return }
    page.knowledge = StatementKnowledge(
      held: Set(try store.statementIDs()), there: request.view.statements, brought: page.batch.statements.map(\.id),
      elsewhere: request.view.elsewhere)
  }

  /// Answers how many bytes are left.
  private func addStatements(
    _ request: Forwarder.LoadRequest, _ store: StoreReader, _ page: inout Forwarder.Page
  ) throws -> Int {
    page.statementsEnd = request.statementsAfter
    var room = request.bytes
    while room > 0 {
      let found = try store.statements(cameAfter: page.statementsEnd, byteLimit: room)
      guard let last = found.last else { break }
      page.statementsEnd = last.arrival
      for statement in found where !request.view.statements.contains(statement.id) {
        page.batch.statements.append(LedgerBatch.Statement(id: statement.id, encoded: statement.encoded))
        room -= statement.encoded.count
      }
    }
    return room
  }

  private func addRuns(
    _ request: Forwarder.LoadRequest, _ room: Int, _ lane: Lane, _ store: StoreReader, _ page: inout Forwarder.Page,
    _ marks: inout Marks
  ) throws {
    let limits = ArrivalLimits(bytes: room, changes: request.changes)
    let found = try store.runs(cameAfter: request.runsAfter, within: limits) { partition, replica, last, arrival in
      lane.holds(partition)
        && request.view.lacks(ChainKey(partition: partition, replica: replica), through: last, arrival: arrival)
    }
    (page.runsEnd, page.isEnd) = (found.end, found.isAll)
    page.oldestArrived = found.runs.first?.arrived
    var unread = Dictionary(
      found.unread.map { (ChainKey(partition: $0.partition, replica: $0.replica), $0) },
      uniquingKeysWith: { first, _ in first })
    var there = There(request.view)
    for arrived in found.runs {
      let chain = ChainKey(partition: arrived.partition, replica: arrived.replica)
      // A ledger has a chain from its beginning on.
      guard unread[chain].map({ arrived.run.arrival < $0.arrival }) ?? true else { continue }
      guard arrived.run.first - 1 <= there.highest(of: chain) else {
        unread[chain] = UnreadRun(arrived, "what comes before it is not where it belongs")
        continue
      }
      if page.batch.partitions[arrived.partition] == nil {
        page.batch.partitions[arrived.partition] = try store.partition(arrived.partition)?.name
      }
      do {
        let run = try run(arrived, store, &page.batch)
        page.batch.runs.append(run)
        there.note(run)
        try mark(arrived, run, request, store, &marks)
      } catch let failure where DamagedLog.isOfOneRow(failure) {
        unread[chain] = UnreadRun(arrived, "\(failure)")
      }
    }
    page.unread = unread.mapValues { run in
      RefusedRow(run.first...max(run.first, run.last), "this device's own log does not read: \(run.reason)")
    }
  }

  /// The run's rows; a payload that travels apart is put into the batch.
  private func run(_ arrived: ArrivedRun, _ store: StoreReader, _ batch: inout LedgerBatch) throws -> LedgerBatch.Run {
    let chain = ChainKey(partition: arrived.partition, replica: arrived.replica)
    let run = try RunCodec.decode(arrived.run.body[...], fleet: fleet, partition: arrived.partition, hash: hash)
    if let payload = try RunCodec.apartPayload(of: arrived.run.body[...]) {
      guard let bytes = try store.largePayload(payload) else {
        throw StoreError.damagedLog("a change's payload is not there")
      }
      batch.payloads.append(LedgerBatch.Payload(partition: arrived.partition, hash: payload, bytes: bytes))
    }
    let changes = zip(run.changes, run.hashes).map { change, hash in
      LedgerBatch.Change(
        hash: hash, timestamp: change.header.timestamp, wallMilliseconds: change.header.wall.milliseconds,
        payloadByteCount: change.header.payloadByteCount,
        edit: change.header.extensions.lazy.compactMap { UUIDValue(cause: $0) }.first)
    }
    return LedgerBatch.Run(
      chain: chain, first: run.first, last: run.last, hashBefore: run.hashBefore, hash: run.hashAtLast,
      context: encode(arrived.run.context, of: run, in: chain), body: arrived.run.body, changes: changes)
  }

  /// As it differs from that of the run right before it, where that is known here and in the ledger.
  private func encode(_ context: VersionVector, of run: DecodedRun, in chain: ChainKey) -> [UInt8] {
    let before = contexts[chain].flatMap { $0.hash == run.hashBefore ? $0.context : nil }
    if contextEntries > PageReader.contextEntryLimit { forget() }
    let replaced = contexts.updateValue(Known(hash: run.hashAtLast, context: context), forKey: chain)
    contextEntries += context.count - (replaced?.context.count ?? 0)
    var writer = CBORWriter(reserving: 64)
    writer.context(ContextForm.shorter(context, base: before))
    return writer.bytes
  }

  // MARK: Marks

  /// Marks to be written, of each chain one. They are of the state of the store that ``LedgerBatch/heads`` are of: an older mark
  /// beside newer heads would take the place of what another relay marked since.
  private struct Marks {
    var positions: [ChainKey: ChainPosition] = [:]

    var rows: [LedgerBatch.Mark] {
      positions.sorted { $0.key < $1.key }.map { LedgerBatch.Mark(chain: $0.key, position: $0.value) }
    }
  }

  /// What is settled to count when it comes is marked with it, so that a long backlog can be read from its beginning on. What
  /// counts above that, and on which branch of a fork, is known at the end of the log alone.
  private func mark(
    _ arrived: ArrivedRun, _ run: LedgerBatch.Run, _ request: Forwarder.LoadRequest, _ store: StoreReader,
    _ marks: inout Marks
  ) throws {
    guard !arrived.isForked, !request.isSearching, request.unmarked[arrived.partition] != nil,
      let number = try store.partitionNumber(arrived.partition),
      let settled = try store.chain(number, arrived.replica)?.accepted, settled.sequence >= run.last
    else { return }
    marks.positions[run.chain] = ChainPosition(sequence: run.last, tip: run.hash.tip)
  }

  private func addMarks(
    _ request: Forwarder.LoadRequest, _ lane: Lane, _ store: StoreReader, _ page: inout Forwarder.Page,
    _ marks: inout Marks
  ) throws {
    let isOneState = try store.logEnd().text == request.unmarkedAt
    var there = There(request.view)
    for run in page.batch.runs { there.note(run) }
    for (partition, accepted) in request.unmarked.sorted(by: { $0.key < $1.key }) where lane.holds(partition) {
      guard marks.positions.count < request.marks else { return }
      guard let number = try store.partitionNumber(partition) else {
        page.marked[partition] = accepted
        continue
      }
      var isComplete = true
      for stored in try store.chains(of: number) where stored.received.sequence > 0 {
        let chain = ChainKey(partition: partition, replica: stored.replica)
        // A store says how far a chain is settled; more of it may count.
        let isSettled = stored.holdReason == nil && stored.accepted.sequence == stored.received.sequence
        let counted =
          isSettled ? stored.accepted.position : isOneState ? accepted[stored.replica] ?? .nothing : nil
        // Where that cannot be said now, or names what the ledger does not take or lacks, it is looked at again.
        let aside = [request.view.aside[chain], page.unread[chain]].compactMap { $0 }
        let reach = min(stored.received.sequence, there.highest(of: chain))
        // Of a fork the row may be of another branch than what counts.
        guard let position = counted, position.sequence <= reach,
          aside.allSatisfy({ stored.holdReason == nil && $0.lies(above: position) })
        else {
          marks.positions[chain] = nil
          isComplete = false
          continue
        }
        // That nothing of a chain counts is a word too: without a row, whoever knows less would have the first one.
        let isThere = marks.positions[chain] ?? request.view.marks[chain] == position
        if isThere || request.view.left[chain] == position { continue }
        guard marks.positions.count < request.marks else {
          isComplete = false
          break
        }
        marks.positions[chain] = position
      }
      if isComplete { page.marked[partition] = accepted }
    }
  }
}

/// The highest number of each chain that a ledger has once a batch is in, on whatever branch.
private struct There {
  private let view: LedgerView
  private var brought: [ChainKey: UInt64] = [:]

  init(_ view: LedgerView) { self.view = view }

  func highest(of chain: ChainKey) -> UInt64 { max(view.highest[chain] ?? 0, brought[chain] ?? 0) }
  mutating func note(_ run: LedgerBatch.Run) { brought[run.chain] = max(brought[run.chain] ?? 0, run.last) }
}

extension ChainMark {
  /// Of nothing that counts, the beginning.
  fileprivate var position: ChainPosition {
    sequence == 0 ? .nothing : ChainPosition(sequence: sequence, tip: hash.tip)
  }
}

extension ChainPosition {
  fileprivate static let nothing = ChainPosition(sequence: 0, tip: .zero)
}

extension RefusedRow {
  /// Its changes do; where it is a mark, nothing can be said of its chain.
  fileprivate func lies(above position: ChainPosition) -> Bool {
    changes.map { position.sequence < $0.lowerBound } ?? false
  }
}

extension UnreadRun {
  /// It cannot be brought, though its own row reads.
  fileprivate init(_ arrived: ArrivedRun, _ reason: String) {
    self.init(
      partition: arrived.partition, replica: arrived.replica, first: arrived.run.first, last: arrived.run.last,
      arrival: arrived.run.arrival, reason: reason)
  }
}

/// The partitions of one walk over the log.
struct Lane {
  /// Nil: all.
  private let partitions: Set<PartitionID>?

  init(_ filter: LaneFilter?, _ store: StoreReader) throws {
    guard let filter else {
      partitions = nil
      return
    }
    partitions = Set(try store.partitions().filter { $0.name.map(filter.holds) ?? false }.map(\.id))
  }

  var isWhole: Bool { partitions == nil }
  func holds(_ partition: PartitionID) -> Bool { partitions?.contains(partition) ?? true }
}
