import Identity
import Replication
import Storage
import Wire

/// One change in the making: reads the documents concerned, applies the requests in their order, and takes the difference.
struct DocumentComposer {
  let partition: PartitionID
  let number: PartitionNumber
  let dot: Dot
  private var drafts: [DocumentKey: DocumentDraft] = [:]
  private var order: [DocumentKey] = []
  /// Which document each request concerned.
  private var requested: [DocumentKey] = []
  private var created: [Bool] = []
  /// None for a document that is as it was.
  private var differences: [DocumentKey: DocumentWrite] = [:]

  init(partition: PartitionID, number: PartitionNumber, dot: Dot) {
    (self.partition, self.number, self.dot) = (partition, number, dot)
  }

  mutating func add(
    _ request: DocumentRequest, _ transaction: borrowing Transaction, random: inout some RandomNumberGenerator
  ) throws {
    try DocumentLimits.check(collection: request.collection)
    try DocumentLimits.check(id: request.id)
    let key = DocumentKey(collection: request.collection, id: request.id)
    if drafts[key] == nil {
      drafts[key] = try DocumentDraft(key, request.id, in: number, transaction)
      order.append(key)
    }
    guard var draft = drafts[key] else { return }
    let wasAlive = draft.body != nil
    try draft.apply(request)
    created.append(!wasAlive && draft.body != nil)
    requested.append(key)
    drafts[key] = draft
    differences[key] = try draft.write(dot: dot, random: &random)
  }

  var writes: [DocumentWrite] { order.compactMap { differences[$0] } }

  /// The change, judged exactly as its receivers will judge it.
  func change(timestamp: HybridTimestamp, wall: WallTime, context: VersionVector) throws -> ComposedChange {
    let payload = PayloadEncoder.encode(writes, dot: dot)
    guard payload.count <= Run.changePayloadByteLimit else {
      throw NodeError(
        .tooLarge, "one change holds at most \(Run.changePayloadByteLimit) bytes, this has \(payload.count)")
    }
    return ComposedChange(dot: dot, timestamp: timestamp, wall: wall, payload: payload, context: context)
  }

  /// Puts the documents' new states beside the log, and notes which they are in `changes`.
  mutating func store(
    _ change: ComposedChange, _ transaction: borrowing Transaction, _ changes: inout DocumentChanges
  ) throws {
    let context = WriteContext(dot: change.dot, timestamp: change.timestamp, context: change.context)
    for write in writes {
      let key = DocumentKey(collection: write.collection, id: write.id)
      let collection = try transaction.number(ofCollection: key.collection)
      try drafts[key]?.store(AcceptedWrite(context, write), in: number, collection, transaction)
      changes.note(number, collection, key: key.id)
    }
  }

  func receipt(dot: Dot?) -> WriteReceipt {
    WriteReceipt(
      dot: dot, etags: requested.map { key in drafts[key].flatMap { $0.isAlive ? $0.etag : nil } }, created: created)
  }
}

/// An own change before its run is closed.
struct ComposedChange {
  let dot: Dot
  let timestamp: HybridTimestamp
  let wall: WallTime
  let payload: [UInt8]
  let context: VersionVector

  func keyHashes(in chain: ChainIdentity) throws(NodeError) -> [KeyHash] {
    let header = ChangeHeader(
      sequence: dot.sequence, timestamp: timestamp, wall: wall, payloadByteCount: 0, payloadHash: .zero, keyHashes: [])
    do throws(PayloadError) {
      return try Change.plain(header, payload: payload, chain: chain, SHA256.hash).change.header.keyHashes
    } catch {
      throw NodeError(.unprocessable, "the change cannot be written: \(error)")
    }
  }
}

/// One document as it is and as it is to be.
private struct DocumentDraft {
  let key: DocumentKey
  let id: Value
  private var row: DocumentRow?
  private var state: DocumentState?
  /// Nil where the document is not alive.
  private(set) var body: ValueMap?
  private(set) var etag: String

  var isAlive: Bool { state?.isAlive ?? false }

  init(_ key: DocumentKey, _ id: Value, in partition: PartitionNumber, _ transaction: borrowing Transaction) throws {
    (self.key, self.id) = (key, id)
    let collection = try transaction.number(ofCollection: key.collection)
    row = try transaction.document(partition, collection, key: key.id)
    state = try row.map { try DocumentState(stored: $0) }
    body = state?.shown()
    etag = row.map { DocumentETag.of($0.state) } ?? ""
  }

  mutating func apply(_ request: DocumentRequest) throws(NodeError) {
    if let condition = request.condition { try check(condition) }
    switch request.action {
    case .put(let new, let keepAbsent):
      body = keepAbsent ? (body ?? ValueMap()).overlaid(with: new) : new
    case .insert(let new):
      try check(.isAbsent)
      body = new
    case .mergePatch(let patch, let upsert):
      try checkPresence(orUpsert: upsert)
      body = MergePatch.apply(patch, to: body ?? ValueMap())
    case .update(let operators, let upsert):
      // First what can never be done: an operator that is not built yet is told also where the document is missing.
      let new = try UpdateOperators.apply(operators, to: body ?? ValueMap())
      try checkPresence(orUpsert: upsert)
      body = new
    case .delete:
      try checkPresence(orUpsert: false)
      body = nil
    }
    if let body { try DocumentLimits.check(body: body) }
  }

  private func checkPresence(orUpsert upsert: Bool) throws(NodeError) {
    guard body != nil || upsert else { throw NodeError(.notFound, "there is no such document") }
  }

  private func check(_ condition: DocumentRequest.Condition) throws(NodeError) {
    guard !condition.holds(etag: body == nil ? nil : etag) else { return }
    let now =
      switch (condition, body) {
      case (.isAbsent, _): "a document with this id is there already"
      case (_, nil): row == nil ? "there is no such document" : "the document was deleted"
      case (_, .some): "the document has changed: it has ETag \(etag)"
      }
    throw NodeError(.preconditionFailed, now)
  }

  /// Nil where nothing differs.
  func write(dot: Dot, random: inout some RandomNumberGenerator) throws(NodeError) -> DocumentWrite? {
    do throws(LocalWrite.Refusal) {
      guard let body else { return try LocalWrite.delete(key.collection, id, state: state) }
      return try LocalWrite.write(
        key.collection, id, state: state, body: body, erase: true, dot: dot, random: &random)
    } catch {
      throw NodeError(.unprocessable, "the document cannot be written: \(error)")
    }
  }

  mutating func store(
    _ write: AcceptedWrite, in partition: PartitionNumber, _ collection: CollectionNumber,
    _ transaction: borrowing Transaction
  ) throws {
    var new = state ?? DocumentState()
    new.apply(write)
    let bytes = new.storedBytes
    if let row {
      try transaction.replace(row, in: partition, isAlive: new.isAlive, state: bytes)
    } else {
      _ = try transaction.insertNew(partition, collection, key: key.id, isAlive: new.isAlive, state: bytes)
    }
    (state, etag) = (new, DocumentETag.of(bytes))
  }
}
