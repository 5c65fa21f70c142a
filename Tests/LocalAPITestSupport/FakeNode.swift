import Glibc
import Replication
import Seamesh
import Synchronization

/// A node in memory: documents, a counter for ETags, and a record of what was asked.
package final class FakeNode: NodeInterface {
  struct Key: Hashable {
    let partition: PartitionName
    let collection: Text
    let id: Value
  }

  struct State {
    var documents: [Key: StoredDocument] = [:]
    var sequence: UInt64 = 0
    var writes = 0
    var subscriptions: Set<Text> = []
    var lastFind: FindRequest?
    var lastInvitation: InviteRequest?
    var watches: [FakeWatch] = []
    var failure: NodeError?
    var backupFailure: NodeError?
    var watchFailure: NodeError?
    var exportStalls = false
    var digest: (String?, PartitionStatus.DigestState) = ("d1", .computed)
    var openExports = 0
  }

  let state = Mutex(State())

  package init() {}

  package var writes: Int { state.withLock { $0.writes } }
  package var ids: [Value] { state.withLock { $0.documents.keys.map(\.id) } }
  package func subscriptions() throws(NodeError) -> [Text] { state.withLock { $0.subscriptions.sorted() } }
  package var lastFind: FindRequest? { state.withLock { $0.lastFind } }
  package var lastInvitation: InviteRequest? { state.withLock { $0.lastInvitation } }
  package var watches: [FakeWatch] { state.withLock { $0.watches } }
  package func fail(_ error: NodeError) { state.withLock { $0.failure = error } }
  /// Backups fail with this after they have begun.
  package func failBackups(_ error: NodeError) { state.withLock { $0.backupFailure = error } }
  /// Watches begin and then fail with this.
  package func failWatches(_ error: NodeError?) { state.withLock { $0.watchFailure = error } }
  package var openExports: Int { state.withLock { $0.openExports } }
  /// State digests are not there, for this reason.
  package func withholdDigests(_ reason: PartitionStatus.DigestState) { state.withLock { $0.digest = (nil, reason) } }
  /// An export that goes on for ever.
  package func stallExports() { state.withLock { $0.exportStalls = true } }

  private func check() throws(NodeError) {
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  package func status() throws(NodeError) -> NodeStatus {
    try check()
    var status = NodeStatus()
    (status.version, status.fleetName, status.held) = ("0.1", "test fleet", ["no-grant": 2])
    return status
  }

  package func peers() throws(NodeError) -> [PeerStatus] {
    var peer = PeerStatus()
    (peer.label, peer.state, peer.behind) = ("bridge", "connected", 3)
    return [peer]
  }

  package func devices() throws(NodeError) -> [DeviceStatus] {
    var device = DeviceStatus()
    (device.label, device.isSelf, device.replicas) = ("bridge", true, ["00ff"])
    return [device]
  }

  package func partitions(withDigests: Bool) throws(NodeError) -> [PartitionStatus] {
    state.withLock { state in
      state.subscriptions.sorted().map { name in
        var status = PartitionStatus()
        (status.name, status.subscribed) = (name.string, true)
        if withDigests { (status.digest, status.digestState) = state.digest }
        status.vector = [("00ff", 7, "aabb")]
        return status
      }
    }
  }

  package func subscribe(_ pattern: Text) throws(NodeError) { state.withLock { _ = $0.subscriptions.insert(pattern) } }
  package func unsubscribe(_ pattern: Text) throws(NodeError) {
    state.withLock { _ = $0.subscriptions.remove(pattern) }
  }

  package func invite(_ request: InviteRequest) throws(NodeError) -> String {
    state.withLock { $0.lastInvitation = request }
    return "CODE-1"
  }

  package func read(_ partition: PartitionName, _ collection: Text, id: Value) throws(NodeError) -> StoredDocument? {
    try check()
    return state.withLock { $0.documents[Key(partition: partition, collection: collection, id: id)] }
  }

  package func write(_ partition: PartitionName, _ requests: [DocumentRequest]) throws(NodeError) -> WriteReceipt {
    try check()
    let result: Result<WriteReceipt, NodeError> = state.withLock { state in
      let before = state
      do throws(NodeError) {
        var (etags, created): ([String?], [Bool]) = ([], [])
        for request in requests {
          let (etag, isNew) = try state.apply(request, partition)
          etags.append(etag)
          created.append(isNew)
        }
        state.writes += 1
        let dot = Dot(replica: ReplicaID(high: 1, low: 2), sequence: state.sequence)
        return .success(WriteReceipt(dot: dot, etags: etags, created: created))
      } catch {
        state = before
        return .failure(error)
      }
    }
    return try result.get()
  }

  package func writeEach(
    _ partition: PartitionName, _ requests: [DocumentRequest]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    requests.map { request in Result { () throws(NodeError) in try write(partition, [request]) } }
  }

  package func find(
    _ partition: PartitionName, _ collection: Text, _ query: FindRequest
  ) throws(NodeError) -> [StoredDocument] {
    try check()
    return state.withLock { state in
      state.lastFind = query
      return state.sorted(partition, collection).map(\.1)
    }
  }

  package func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError) {
    try check()
    let (all, stalls) = state.withLock { state in
      state.openExports += 1
      return (state.sorted(partition, collection), state.exportStalls)
    }
    defer { state.withLock { $0.openExports -= 1 } }
    repeat {
      for (name, document) in all { guard visit(name, document) else { return } }
    } while stalls
  }

  package func watch(
    _ partition: PartitionName, _ collection: Text, _ query: FindRequest
  ) throws(NodeError) -> any WatchSubscription {
    try check()
    let watch = FakeWatch()
    if let failure = state.withLock({ $0.watchFailure }) { watch.fail(failure) }
    state.withLock { state in
      state.lastFind = query
      state.watches.append(watch)
      watch.push(.snapshot(state.sorted(partition, collection).map(\.1), cursor: "c\(state.sequence)"))
    }
    return watch
  }

  package func doctor() throws(NodeError) -> [DoctorFinding] {
    [DoctorFinding(.warning, "clock", "The clock is off.", remedy: "Set it.")]
  }

  package func backup(to path: String, progress: (Int, Int) -> Void) throws(NodeError) {
    try check()
    progress(1, 2)
    if let failure = state.withLock({ $0.backupFailure }) { throw failure }
    progress(2, 2)
  }

  package func metrics() throws(NodeError) -> String { "seamesh_documents 1\n" }
}

extension FakeNode.State {
  func sorted(_ partition: PartitionName, _ collection: Text?) -> [(Text, StoredDocument)] {
    documents.filter { $0.key.partition == partition && (collection == nil || $0.key.collection == collection) }
      .map { ($0.key.collection, $0.value) }
      .sorted { $0.1.id.canonicalBytes.lexicographicallyPrecedes($1.1.id.canonicalBytes) }
  }

  mutating func apply(
    _ request: DocumentRequest, _ partition: PartitionName
  ) throws(NodeError) -> (etag: String?, created: Bool) {
    let key = FakeNode.Key(partition: partition, collection: request.collection, id: request.id)
    let old = documents[key]
    if let wanted = request.ifMatch, wanted != old?.etag { throw NodeError(.preconditionFailed, "another version") }
    var body = old?.body ?? ValueMap()
    switch request.action {
    case .put(let new, let eraseAbsent):
      if eraseAbsent { body = ValueMap() }
      for entry in new.entries { body[entry.key] = entry.value }
    case .insert(let new):
      guard old == nil else { throw NodeError(.preconditionFailed, "it is there already") }
      body = new
    case .mergePatch(let patch):
      for entry in patch.entries { body[entry.key] = entry.value == .null ? nil : entry.value }
    case .update(let operators):
      guard operators.entries.allSatisfy({ $0.key == "$set" }), case .map(let fields)? = operators["$set"] else {
        throw NodeError(.unprocessable, "only $set is built")
      }
      for entry in fields.entries { body[entry.key] = entry.value }
    case .delete:
      guard old != nil else { throw NodeError(.notFound, "no such document") }
      documents[key] = nil
      sequence += 1
      return (nil, false)
    }
    sequence += 1
    documents[key] = StoredDocument(id: request.id, body: body, etag: "v\(sequence)")
    return ("v\(sequence)", old == nil)
  }
}

/// Gives out what is pushed.
package final class FakeWatch: WatchSubscription {
  private let events = Mutex<[WatchEvent]>([])
  private let pushed = TimedSemaphore()
  private let cancelled = Mutex(false)
  private let failure = Mutex<NodeError?>(nil)

  package var isCancelled: Bool { cancelled.withLock { $0 } }

  package func push(_ event: WatchEvent) {
    events.withLock { $0.append(event) }
    pushed.signal()
  }

  /// What is asked for next fails.
  package func fail(_ error: NodeError) {
    failure.withLock { $0 = error }
    pushed.signal()
  }

  package func next(timeoutMilliseconds: Int) throws(NodeError) -> WatchEvent? {
    if let error = failure.withLock({ $0 }) { throw error }
    guard pushed.wait(milliseconds: UInt64(max(0, timeoutMilliseconds))) else { return nil }
    return events.withLock { $0.isEmpty ? nil : $0.removeFirst() }
  }

  package func cancel() { cancelled.withLock { $0 = true } }
}
