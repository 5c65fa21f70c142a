import Dispatch
import Engine
import Replication
import Storage
import Synchronization

/// State digests of partitions, each kept with the accepted vector of the very state that it was computed from. They are
/// computed where somebody asks: one partition at a time, behind the requests, which wait for a short while only.
final class StateDigests: Sendable {
  struct Known: Sendable {
    let vector: VersionVector
    let digest: String
    let inboxDigest: String
    let documents: Int64
    /// When the state was read.
    let time: ContinuousClock.Instant
  }

  enum Outcome: Sendable {
    case known(Known)
    case failed(NodeError, VersionVector, at: ContinuousClock.Instant)
    /// Nothing came of it this time.
    case unsettled(NodeError)
  }

  private struct State {
    var outcomes: [PartitionID: Outcome] = [:]
    /// Partitions whose turn is now or later, with whom to tell.
    var waiting: [PartitionID: [TimedSemaphore]] = [:]
  }

  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "seamesh.digests", qos: .utility)

  /// What failed is not tried again sooner, however often it is asked for: a damaged row stays damaged.
  private static let retryInterval = Duration.seconds(60)

  /// Fills in what is known after `milliseconds` at the latest. What is not goes on being computed.
  func fill(_ rows: [PartitionRow], of node: Node, within milliseconds: Int) -> [PartitionStatus] {
    let asked = ContinuousClock.now
    let signal = TimedSemaphore()
    var missing = rows.count { row in request(row, of: node, at: asked, signal) }
    let deadline = asked.advanced(by: .milliseconds(milliseconds))
    while missing > 0, case let left = ContinuousClock.now.duration(to: deadline), left > .zero {
      guard signal.wait(milliseconds: UInt64(max(1, left / .milliseconds(1)))) else { break }
      missing -= 1
    }
    return rows.map { row in status(row, askedAt: asked) }
  }

  /// Whether the answer is still to come.
  private func request(
    _ row: PartitionRow, of node: Node, at asked: ContinuousClock.Instant, _ signal: TimedSemaphore
  ) -> Bool {
    let (isMissing, isNew) = state.withLock { state in
      switch state.outcomes[row.id] {
      case .known(let known) where known.vector == row.accepted: return (false, false)
      case .failed(_, row.accepted, let time) where asked - time < StateDigests.retryInterval: return (false, false)
      default: break
      }
      state.waiting[row.id, default: []].append(signal)
      return (true, state.waiting[row.id]?.count == 1)
    }
    if isNew { begin(row, of: node) }
    return isMissing
  }

  private func begin(_ row: PartitionRow, of node: Node) {
    queue.async { [weak node] in
      let outcome = node.map { StatePass(node: $0, row: row).outcome() }
      let waiting = self.state.withLock { state in
        if let outcome { state.outcomes[row.id] = outcome }
        return state.waiting.removeValue(forKey: row.id) ?? []
      }
      for signal in waiting { signal.signal() }
    }
  }

  private func status(_ row: PartitionRow, askedAt asked: ContinuousClock.Instant) -> PartitionStatus {
    var status = row.status
    switch state.withLock({ $0.outcomes[row.id] }) {
    case .known(let known) where known.vector == row.accepted || known.time >= asked:
      // Of the state of the digest, which may be a later one than that of the row.
      (status.digest, status.inboxDigest, status.digestState) = (known.digest, known.inboxDigest, .computed)
      (status.vector, status.documents) = (PartitionStatus.shown(known.vector), known.documents)
    case .failed(let error, _, _): status.digestState = .failed(error.message)
    case .unsettled(let error): status.digestState = .notComputed(error.message)
    default: status.digestState = .notComputed("it is being computed: ask again")
    }
    return status
  }
}

/// One pass over the documents of a partition for its state digest.
private struct StatePass {
  let node: Node
  let row: PartitionRow

  /// A partition that is written to is read anew so often, then left for a quieter time.
  private static let attemptLimit = 3

  private struct Progress {
    /// Of the state that all of it is read from.
    var vector: VersionVector?
    var time = ContinuousClock.now
    var (sum, inbox) = (StateSum(), StateSum())
    var documents: Int64 = 0
    /// The collection that is being read, by its place among all of them, and the last key read of it.
    var collection = 0
    var last: [UInt8]?
    var damaged: Set<DocumentKey> = []
  }

  private enum Step { case more, done, moved }

  func outcome() -> StateDigests.Outcome {
    var progress = Progress()
    do throws(NodeError) {
      for _ in 0..<StatePass.attemptLimit {
        progress = Progress()
        var step = Step.more
        while step == .more { step = try slice(&progress) }
        guard step == .done, let vector = progress.vector else { continue }
        guard progress.damaged.isEmpty else {
          guard try node.mend(progress.damaged, in: row.name) else {
            throw NodeError(.damaged, "documents in it do not read on this device: seamesh doctor names them")
          }
          continue
        }
        return .known(
          .init(
            vector: vector, digest: progress.sum.text, inboxDigest: progress.inbox.text, documents: progress.documents,
            time: progress.time))
      }
      return .unsettled(NodeError(.busy, "the partition changes while it is read: ask again when it is quiet"))
    } catch {
      let passes = error.code == .busy || error.code == .stopping
      return passes ? .unsettled(error) : .failed(error, progress.vector ?? row.accepted, at: .now)
    }
  }

  /// Some pages from one state, whose vector must be that of the slices before.
  private func slice(_ progress: inout Progress) throws(NodeError) -> Step {
    try node.pinned(row.id) { reader, vector in
      guard progress.vector == nil || progress.vector == vector else { return .moved }
      progress.vector = vector
      guard let number = try reader.partitionNumber(row.id) else { return .done }
      let end = ContinuousClock.now.advanced(by: .milliseconds(node.limits.digestSliceMilliseconds))
      let collections = try reader.collections(of: number)
      while progress.collection < collections.count {
        let (name, collection) = collections[progress.collection]
        let rows = try reader.documents(
          number, collection, after: progress.last, limit: node.limits.pageDocuments,
          byteLimit: node.limits.pageBytes, withDeleted: true)
        try add(rows, of: name, &progress)
        if rows.isEmpty { progress.collection += 1 }
        if ContinuousClock.now >= end { break }
      }
      return progress.collection < collections.count ? .more : .done
    }
  }

  private func add(_ rows: [DocumentRow], of collection: Text, _ progress: inout Progress) throws {
    progress.last = rows.last?.key
    for row in rows {
      guard !node.isStopping else { throw NodeError(.stopping, "the node is stopping") }
      guard let state = try? DocumentState(stored: row), state.isAlive == row.isAlive,
        let id = Value(canonicalID: row.key)
      else {
        progress.damaged.insert(DocumentKey(collection: collection, id: row.key))
        try node.limits.check(damaged: progress.damaged.count)
        continue
      }
      let shown = state.rendered()
      if case .map(let body) = shown.value {
        progress.sum.add(StateSum.term(self.row.name, collection, id: id, body))
        progress.documents += 1
      }
      // Deleted ones have conflicts, too.
      let inbox = state.inbox(shown: shown)
      if !inbox.isEmpty { progress.inbox.add(StateSum.term(self.row.name, collection, id: id, inbox: inbox)) }
    }
  }
}

extension Node {
  /// Reads from one state of the store, together with what a partition has accepted in that very state.
  fileprivate func pinned<Answer>(
    _ partition: PartitionID, _ body: (StoreReader, VersionVector) throws -> Answer
  ) throws(NodeError) -> Answer {
    try reading { reader in
      defer { reader.unpin() }
      // Lent to the engine thread, which alone knows when a vector and the store agree; this one waits meanwhile.
      nonisolated(unsafe) let lent = reader
      let vector = try onEngine { engine in
        Result { () throws(NodeError) in try engine.pin(lent, partition) }
      }.get()
      return try body(reader, vector)
    }
  }
}

extension NodeEngine {
  fileprivate func pin(_ reader: StoreReader, _ partition: PartitionID) throws(NodeError) -> VersionVector {
    // After a failure the mesh may know what never reached the disk.
    if let failure { throw NodeError(any: failure) }
    do throws(StoreError) { try reader.pin() } catch { throw NodeError(error) }
    return state.mesh.partitions[partition]?.log.accepted ?? VersionVector()
  }
}
