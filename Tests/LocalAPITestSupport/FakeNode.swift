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
    var invitations: [InvitationStatus] = []
    var watches: [FakeWatch] = []
    var failure: NodeError?
    var backupFailure: NodeError?
    var watchFailure: NodeError?
    var exportStalls = false
    /// First bodies under a key.
    var keyedBodies: [ObjectID: ValueMap] = [:]
    var digest: (String?, PartitionStatus.DigestState) = ("d1", .computed)
    var inboxDigest: String?
    var openExports = 0
    /// Writes of these ids are refused so.
    var refusals: [Value: NodeError] = [:]
    /// So many writes of these ids among others are answered as busy.
    var busyRecords: [Value: Int] = [:]
    /// So many bulk writes are answered as busy.
    var busyWrites = 0
    /// So many before these are not.
    var passingWrites = 0
    /// Exports break with this after their first document.
    var exportFailure: NodeError?
    var damaged: [DamagedStatus] = []
    var isOneState = true
    var status: NodeStatus?
    var sendsAsked = 0
    var refused: [RefusedRunStatus] = []
    var refusedStatements: [RefusedStatementStatus] = []
    var peers: [PeerStatus]?
    var devices: [DeviceStatus]?
    var findings: [DoctorFinding]?
    var lastRightsChange: RightsChange?
    var rightsOutcome: RightsOutcome?
    var lastPermissionQuery: (partition: PartitionName?, who: String?)?
    var permissions = PermissionReport()
    var receipts = ReceiptReport()
    var wipe = WipeReport()
    var conflicts: [ConflictPage] = []
    var lastConflictQuery: ConflictQuery?
    var resolutions: [(conflict: String, choice: ConflictChoice)] = []
    var links: [LinkReport] = []
    var linksUsed: [Text] = []
    var lastWipe: (rules: WipeRules, asking: Bool)?
    var hasAskedForReceipts = false
    var receiptWatches: [FakeReceiptWatch] = []
  }

  let state = Mutex(State())

  package init() {}

  package var writes: Int { state.withLock { $0.writes } }
  package var ids: [Value] { state.withLock { $0.documents.keys.map(\.id) } }
  package func subscriptions() throws(NodeError) -> [Text] { state.withLock { $0.subscriptions.sorted() } }
  package var lastFind: FindRequest? { state.withLock { $0.lastFind } }
  package var lastInvitation: InviteRequest? { state.withLock { $0.lastInvitation } }
  package var sendsAsked: Int { state.withLock { $0.sendsAsked } }
  package var watches: [FakeWatch] { state.withLock { $0.watches } }
  /// Everything fails with this; nil: no more.
  package func fail(_ error: NodeError?) { state.withLock { $0.failure = error } }
  /// Backups fail with this after they have begun.
  package func failBackups(_ error: NodeError) { state.withLock { $0.backupFailure = error } }
  /// Watches begin and then fail with this.
  package func failWatches(_ error: NodeError?) { state.withLock { $0.watchFailure = error } }
  package var openExports: Int { state.withLock { $0.openExports } }
  /// State digests are not there, for this reason.
  package func show(inboxDigest: String?) { state.withLock { $0.inboxDigest = inboxDigest } }
  package func withholdDigests(_ reason: PartitionStatus.DigestState) { state.withLock { $0.digest = (nil, reason) } }
  /// An export that goes on for ever.
  package func stallExports() { state.withLock { $0.exportStalls = true } }

  package func refuse(_ id: Value, _ error: NodeError) { state.withLock { $0.refusals[id] = error } }
  package func beBusy(with id: Value, times: Int) { state.withLock { $0.busyRecords[id] = times } }
  package func beBusy(times: Int, after passing: Int = 0) {
    state.withLock { ($0.busyWrites, $0.passingWrites) = (times, passing) }
  }
  package func damage(_ documents: [DamagedStatus]) { state.withLock { $0.damaged = documents } }
  /// What is found from now on is not of one moment.
  package func mixResults() { state.withLock { $0.isOneState = false } }
  package func breakExports(_ error: NodeError) { state.withLock { $0.exportFailure = error } }
  package func show(status: NodeStatus) { state.withLock { $0.status = status } }
  package func show(peers: [PeerStatus]) { state.withLock { $0.peers = peers } }
  package func show(devices: [DeviceStatus]) { state.withLock { $0.devices = devices } }
  package func show(findings: [DoctorFinding]) { state.withLock { $0.findings = findings } }

  /// One after the other, by their `next`, which are whole numbers from 1 on.
  package func show(conflicts: [ConflictPage]) { state.withLock { $0.conflicts = conflicts } }
  package var lastConflictQuery: ConflictQuery? { state.withLock { $0.lastConflictQuery } }
  package var resolutions: [(conflict: String, choice: ConflictChoice)] { state.withLock { $0.resolutions } }

  package func conflicts(_ partition: PartitionName, _ query: ConflictQuery) throws(NodeError) -> ConflictPage {
    try check()
    let page = state.withLock { state in
      state.lastConflictQuery = query
      let index = query.after.map { Int($0) ?? -1 } ?? 0
      return index == 0 && state.conflicts.isEmpty
        ? ConflictPage() : state.conflicts.indices.contains(index) ? state.conflicts[index] : nil
    }
    guard let page else { throw NodeError(.unprocessable, "the list does not go on there") }
    return page
  }

  package func resolve(
    _ partition: PartitionName, conflict: String, _ choice: ConflictChoice
  ) throws(NodeError) -> WriteReceipt {
    try check()
    return state.withLock { state in
      state.resolutions.append((conflict, choice))
      return WriteReceipt(
        dot: Dot(replica: ReplicaID(high: 1, low: 2), sequence: 1), etags: ["v1"], created: [conflict.hasPrefix("gone")]
      )
    }
  }

  package func show(wipe: WipeReport) { state.withLock { $0.wipe = wipe } }
  package var lastWipe: (rules: WipeRules, asking: Bool)? { state.withLock { $0.lastWipe } }

  package func safeToWipe(_ rules: WipeRules, asking: Bool) throws(NodeError) -> WipeReport {
    try check()
    return state.withLock { state in
      state.lastWipe = (rules, asking)
      return state.wipe
    }
  }

  package func show(receipts: ReceiptReport) { state.withLock { $0.receipts = receipts } }
  package var hasAskedForReceipts: Bool { state.withLock { $0.hasAskedForReceipts } }

  package func receipts(
    _ partition: PartitionName, _ collection: Text, id: Value, asking: Bool
  ) throws(NodeError) -> ReceiptReport {
    guard try read(partition, collection, id: id) != nil else {
      throw NodeError(.notFound, "there is no such document")
    }
    var report = try receipts(partition, asking: asking)
    (report.collection, report.id) = (collection.string, id)
    return report
  }

  package func receipts(_ partition: PartitionName, asking: Bool) throws(NodeError) -> ReceiptReport {
    try check()
    return state.withLock { state in
      state.hasAskedForReceipts = asking
      state.receipts.partition = partition.text.string
      return state.receipts
    }
  }

  package var receiptWatches: [FakeReceiptWatch] { state.withLock { $0.receiptWatches } }

  package func watchReceipts(_ place: ReceiptPlace, asking: Bool) throws(NodeError) -> any ReceiptSubscription {
    let watch = FakeReceiptWatch()
    if let document = place.document {
      watch.push(try receipts(place.partition, document.collection, id: document.id, asking: asking))
    } else {
      watch.push(try receipts(place.partition, asking: asking))
    }
    state.withLock { $0.receiptWatches.append(watch) }
    return watch
  }

  private func check() throws(NodeError) {
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  package func status() throws(NodeError) -> NodeStatus {
    try check()
    if let status = state.withLock({ $0.status }) { return status }
    var status = NodeStatus()
    (status.version, status.fleetName, status.held) = ("0.1", "test fleet", ["no-grant": 2])
    return status
  }

  package func peers() throws(NodeError) -> [PeerStatus] {
    if let peers = state.withLock({ $0.peers }) { return peers }
    var peer = PeerStatus()
    (peer.label, peer.state, peer.behind) = ("bridge", .connected, 3)
    return [peer]
  }

  package func devices() throws(NodeError) -> [DeviceStatus] {
    if let devices = state.withLock({ $0.devices }) { return devices }
    var device = DeviceStatus()
    (device.label, device.isSelf, device.replicas) = ("bridge", true, ["00ff"])
    (device.role, device.roles) = ("admin", ["admin", "officer"])
    return [device]
  }

  package func partitions(withDigests: Bool) throws(NodeError) -> [PartitionStatus] {
    state.withLock { state in
      state.subscriptions.sorted().map { name in
        var status = PartitionStatus()
        (status.name, status.subscribed) = (name.string, true)
        if withDigests { (status.digest, status.digestState) = state.digest }
        if withDigests { status.inboxDigest = state.inboxDigest }
        status.vector = [("00ff", 7, "aabb")]
        return status
      }
    }
  }

  @discardableResult
  package func subscribe(_ pattern: Text) throws(NodeError) -> [String] {
    state.withLock { _ = $0.subscriptions.insert(pattern) }
    return []
  }
  package func unsubscribe(_ pattern: Text) throws(NodeError) {
    try check()
    state.withLock { _ = $0.subscriptions.remove(pattern) }
  }

  package func invite(_ request: InviteRequest) throws(NodeError) -> IssuedInvitation {
    try check()
    return state.withLock { state in
      state.lastInvitation = request
      let status = InvitationStatus(
        serial: UInt64(state.invitations.count) + 1, user: request.user, role: request.role, profile: request.profile,
        expires: request.validMilliseconds)
      state.invitations.append(status)
      return IssuedInvitation(code: "CODE-1", status: status)
    }
  }

  package func invitations() throws(NodeError) -> [InvitationStatus] {
    try check()
    return state.withLock { $0.invitations }
  }

  package func cancelInvitation(_ serial: UInt64) throws(NodeError) {
    try check()
    let isThere = state.withLock { state in
      let place = state.invitations.firstIndex { $0.serial == serial }
      if let place { state.invitations.remove(at: place) }
      return place != nil
    }
    guard isThere else { throw NodeError(.notFound, "no invitation \(serial) is open") }
  }

  package func change(_ change: RightsChange) throws(NodeError) -> RightsOutcome {
    try check()
    var outcome = RightsOutcome()
    state.withLock { state in
      state.lastRightsChange = change
      outcome = state.rightsOutcome ?? outcome
    }
    outcome.isSigned = !change.isDryRun
    return outcome
  }

  package func permissions(_ partition: PartitionName?, who: String?) throws(NodeError) -> PermissionReport {
    try check()
    return state.withLock { state in
      state.lastPermissionQuery = (partition, who)
      return state.permissions
    }
  }

  package func rules() throws(NodeError) -> [RightStatus] { state.withLock { $0.permissions.rights } }

  package var lastRightsChange: RightsChange? { state.withLock { $0.lastRightsChange } }
  package var lastPermissionQuery: (partition: PartitionName?, who: String?)? {
    state.withLock { $0.lastPermissionQuery }
  }
  package func show(rights outcome: RightsOutcome) { state.withLock { $0.rightsOutcome = outcome } }
  package func show(permissions: PermissionReport) { state.withLock { $0.permissions = permissions } }

  package func read(_ partition: PartitionName, _ collection: Text, id: Value) throws(NodeError) -> StoredDocument? {
    try check()
    return state.withLock { $0.documents[Key(partition: partition, collection: collection, id: id)] }
  }

  package func insert(
    _ body: ValueMap, under key: Text, _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> (id: ObjectID, receipt: WriteReceipt) {
    let high = key.utf8.reduce(UInt64(collection.utf8.count)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    let id = ObjectID(high: high, low: UInt32(partition.text.utf8.count))
    let isFirst = state.withLock { state in
      let first = state.keyedBodies[id] ?? body
      state.keyedBodies[id] = first
      return first == body
    }
    guard isFirst else { throw NodeError(.unprocessable, "this key was used for another document") }
    let request = DocumentRequest(collection: collection, id: .objectID(id), action: .insertOnce(body: body))
    return (id, try write(partition, [request]))
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
    let isBusy = state.withLock { state in
      guard state.passingWrites == 0 else {
        state.passingWrites -= 1
        return false
      }
      defer { state.busyWrites = max(0, state.busyWrites - 1) }
      return state.busyWrites > 0
    }
    guard !isBusy else { throw NodeError(.busy, "too much to do") }
    return requests.map { request in
      Result { () throws(NodeError) in
        guard !isRecordBusy(request.id) else { throw NodeError(.busy, "a new replica id was drawn just now") }
        return try write(partition, [request])
      }
    }
  }

  private func isRecordBusy(_ id: Value) -> Bool {
    state.withLock { state in
      guard let times = state.busyRecords[id], times > 0 else { return false }
      state.busyRecords[id] = times - 1
      return true
    }
  }

  package func find(
    _ partition: PartitionName, _ collection: Text, _ query: FindRequest
  ) throws(NodeError) -> FoundDocuments {
    try check()
    return state.withLock { state in
      state.lastFind = query
      return FoundDocuments(
        state.sorted(partition, collection).map(\.1), damaged: state.damaged.map(\.id), isOneState: state.isOneState)
    }
  }

  package func damaged() throws(NodeError) -> [DamagedStatus] {
    try check()
    return state.withLock(\.damaged)
  }

  package func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError) {
    try check()
    let (all, stalls, failure) = state.withLock { state in
      state.openExports += 1
      return (state.sorted(partition, collection), state.exportStalls, state.exportFailure)
    }
    defer { state.withLock { $0.openExports -= 1 } }
    repeat {
      for (name, document) in all {
        guard visit(name, document) else { return }
        if let failure { throw failure }
      }
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
    state.withLock { $0.findings } ?? [DoctorFinding(.warning, "clock", "The clock is off.", remedy: "Set it.")]
  }

  package func backup(to path: String, progress: (Int, Int) -> Void) throws(NodeError) {
    try check()
    progress(1, 2)
    if let failure = state.withLock({ $0.backupFailure }) { throw failure }
    progress(2, 2)
  }

  package func links() throws(NodeError) -> [LinkReport] {
    try check()
    return state.withLock { $0.links }
  }

  package func useLinks(_ name: Text) throws(NodeError) {
    try check()
    state.withLock { $0.linksUsed.append(name) }
  }

  package var linksUsed: [Text] { state.withLock { $0.linksUsed } }
  package func show(links: [LinkReport]) { state.withLock { $0.links = links } }

  package func sendForwardingNow() throws(NodeError) {
    try check()
    state.withLock { $0.sendsAsked += 1 }
  }

  package func show(refused: [RefusedRunStatus], _ statements: [RefusedStatementStatus] = []) {
    state.withLock { ($0.refused, $0.refusedStatements) = (refused, statements) }
  }

  package func refusedRuns() throws(NodeError) -> [RefusedRunStatus] {
    try check()
    return state.withLock(\.refused)
  }

  package func refusedStatements() throws(NodeError) -> [RefusedStatementStatus] {
    try check()
    return state.withLock(\.refusedStatements)
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
    if let refusal = refusals[request.id] { throw refusal }
    let key = FakeNode.Key(partition: partition, collection: request.collection, id: request.id)
    let old = documents[key]
    if let condition = request.condition, !condition.holds(etag: old?.etag) {
      throw NodeError(.preconditionFailed, "another version")
    }
    if !request.action.makesDocuments, old == nil { throw NodeError(.notFound, "no such document") }
    var body = old?.body ?? ValueMap()
    switch request.action {
    case .put(let new, let keepAbsent):
      if !keepAbsent { body = ValueMap() }
      for entry in new.entries { body[entry.key] = entry.value }
    case .insert(let new):
      guard old == nil else { throw NodeError(.preconditionFailed, "it is there already") }
      body = new
    case .insertOnce(let new):
      if let old { return (old.etag, false) }
      body = new
    case .mergePatch(let patch, _):
      for entry in patch.entries { body[entry.key] = entry.value == .null ? nil : entry.value }
    case .update(let operators, _):
      guard operators.entries.allSatisfy({ $0.key == "$set" }), case .map(let fields)? = operators["$set"] else {
        throw NodeError(.unprocessable, "only $set is built")
      }
      for entry in fields.entries { body[entry.key] = entry.value }
    case .delete:
      documents[key] = nil
      sequence += 1
      return (nil, false)
    }
    sequence += 1
    documents[key] = StoredDocument(id: request.id, body: body, etag: "v\(sequence)")
    return ("v\(sequence)", old == nil)
  }
}

extension DocumentRequest.Action {
  /// Whether it may be asked where there is no document.
  fileprivate var makesDocuments: Bool {
    switch self {
    case .put, .insert, .insertOnce: true
    case .mergePatch(_, let upsert), .update(_, let upsert): upsert
    case .delete: false
    }
  }
}
