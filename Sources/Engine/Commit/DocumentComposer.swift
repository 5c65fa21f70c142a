import Replication
import Wire

/// One change in the making: reads the documents concerned, applies the edits in their order, and takes the difference.
struct DocumentComposer {
  private let partition: PartitionID
  private let dot: Dot
  private let hash: HashFunction
  /// Documents that are damaged for good: they can be written whole, and not otherwise.
  private let lost: Set<DocumentKey>
  /// In the order in which the documents were named first.
  private var drafts: [DocumentDraft] = []
  /// Those of drafts, once there are more than ``few``: nearly all changes are of one document.
  private var places: [DocumentKey: Int] = [:]
  private static let few = 8
  /// Which draft each edit concerned.
  private var edited: [Int] = []
  private var created: [Bool] = []

  init(partition: PartitionID, dot: Dot, hash: @escaping HashFunction, lost: Set<DocumentKey> = []) {
    (self.partition, self.dot, self.hash, self.lost) = (partition, dot, hash, lost)
  }

  mutating func add(
    _ edit: any DocumentEdit, _ log: any LogReading, random: inout any RandomNumberGenerator
  ) throws {
    let partition = partition
    try add(edit, random: &random) { try log.document($0, in: partition) }
  }

  /// As if the document were as somebody read it.
  mutating func add(
    _ edit: any DocumentEdit, on read: DocumentState?, random: inout any RandomNumberGenerator
  ) throws {
    try add(edit, random: &random) { _ in read.map { LogDocument(isAlive: $0.isAlive, state: $0.encoded) } }
  }

  private mutating func add(
    _ edit: any DocumentEdit, random: inout any RandomNumberGenerator, _ read: (DocumentKey) throws -> LogDocument?
  ) throws {
    let key = edit.key
    let place = try place(of: key) ?? begin(key, edit, read)
    let wasAlive = drafts[place].isToBeAlive || lost.contains(key)
    try drafts[place].apply(edit)
    created.append(!wasAlive && drafts[place].isToBeAlive)
    edited.append(place)
    try drafts[place].differ(dot: dot, random: &random)
  }

  private func place(of key: DocumentKey) -> Int? {
    places.isEmpty ? drafts.firstIndex { $0.key == key } : places[key]
  }

  private mutating func begin(
    _ key: DocumentKey, _ edit: any DocumentEdit, _ read: (DocumentKey) throws -> LogDocument?
  ) throws -> Int {
    let isReplaced = lost.contains(key) && edit.isWhole
    drafts.append(try DocumentDraft(key, edit.id, try read(key), isReplaced: isReplaced, hash))
    let first = places.isEmpty ? 0 : drafts.count - 1
    if drafts.count > DocumentComposer.few { for place in first..<drafts.count { places[drafts[place].key] = place } }
    return drafts.count - 1
  }

  var changesSomething: Bool { drafts.contains { $0.difference != nil } }

  var writes: [DocumentWrite] { drafts.compactMap(\.difference) }

  /// Keys of ``writes``.
  var changed: [DocumentKey] { drafts.lazy.filter { $0.difference != nil }.map(\.key) }

  func payload() throws(EngineError) -> [UInt8] {
    let payload = PayloadEncoder.encode(writes, dot: dot)
    guard payload.count <= Run.changePayloadByteLimit else {
      throw .changeTooLarge(byteCount: payload.count, limit: Run.changePayloadByteLimit)
    }
    return payload
  }

  /// All that the change does is to make documents of which there is no row, so that they can lie in its run alone.
  var onlyMakesDocuments: Bool {
    changesSomething
      && drafts.allSatisfy { draft in draft.difference.map { $0.kind == .create && draft.isUnknown } ?? true }
  }

  /// Takes the documents for made by the change, whose run will be folded into the store. Only where
  /// ``onlyMakesDocuments``.
  mutating func note(_ change: ComposedChange) {
    let changed = drafts.indices.filter { drafts[$0].difference != nil }
    for (place, view) in zip(changed, change.documents) { drafts[place].noteMade(by: change, at: view) }
  }

  /// Puts the documents' new states beside the log.
  mutating func store(_ context: WriteContext, _ transaction: any LogTransaction) throws -> ChangedDocuments {
    var (keys, places): ([UInt8], [ChangedDocuments.Place]) = ([], [])
    var items: [(place: Int, key: Range<Int>)] = []
    for place in drafts.indices {
      guard let write = drafts[place].difference else { continue }
      let key = drafts[place].key
      try drafts[place].store(AcceptedWrite(context, write), in: partition, transaction)
      places.append(ChangedDocuments.Place(partition: partition, collection: key.collection))
      items.append((places.count - 1, keys.count..<keys.count + key.id.count))
      keys += key.id
    }
    return ChangedDocuments(keys: keys, places: places, items: items)
  }

  func receipt(dot: Dot?) -> ChangeReceipt {
    ChangeReceipt(dot: dot, etags: edited.map { drafts[$0].etag(hash) }, created: created)
  }
}

/// An own change before its run is closed, judged exactly as its receivers will judge it.
struct ComposedChange {
  let context: WriteContext
  let wall: WallTime
  let payload: [UInt8]
  /// Where its documents lie in ``payload``, in that order.
  let documents: [DocumentWriteView]
  let keyHashes: [KeyHash]

  init(
    _ context: WriteContext, wall: WallTime, payload: [UInt8], in chain: ChainIdentity, _ hash: HashFunction
  ) throws(EngineError) {
    let header = ChangeHeader(
      sequence: context.dot.sequence, timestamp: context.timestamp, wall: wall, payloadByteCount: 0,
      payloadHash: .zero, keyHashes: [])
    do throws(PayloadError) {
      let (change, scan) = try Change.plain(header, payload: payload, chain: chain, hash)
      (documents, keyHashes) = (scan.documents, change.header.keyHashes)
    } catch {
      if case .operationCount(let limit) = error.reason { throw .tooManyOperations(limit: limit) }
      throw .malformedChange("\(error)")
    }
    (self.context, self.wall, self.payload) = (context, wall, payload)
  }
}

/// One document as it is and as it is to be.
private struct DocumentDraft {
  let key: DocumentKey
  private let id: Value
  private var stored: LogDocument?
  private var state: DocumentState?
  private var body: ValueMap?
  private var hints = WriteHints.none
  private var closing: [Conflict] = []
  private let hash: HashFunction
  /// What is stored does not read, and all of it is replaced.
  private let isReplaced: Bool
  /// Between the document as stored and as it is to be; nil where there is none.
  private(set) var difference: DocumentWrite?

  init(
    _ key: DocumentKey, _ id: Value, _ stored: LogDocument?, isReplaced: Bool, _ hash: @escaping HashFunction
  ) throws {
    (self.key, self.id, self.stored, self.hash) = (key, id, stored, hash)
    self.isReplaced = isReplaced
    state = isReplaced ? nil : try stored.map { try DocumentState($0, of: key) }
    body = state?.shown()
  }

  var isToBeAlive: Bool { body != nil }
  /// The store has no row of it, alive or deleted.
  var isUnknown: Bool { stored == nil && !isReplaced }

  func etag(_ hash: HashFunction) -> String? {
    stored.flatMap { $0.isAlive ? DocumentETag.of($0.state, hash) : nil }
  }

  mutating func apply(_ edit: any DocumentEdit) throws {
    let present = PresentDocument(
      state: state, body: body, isDamaged: isReplaced, encoded: stored?.state ?? [], hash: hash)
    closing = []
    switch try edit.outcome(on: present) {
    case .body(let new, let newHints): (body, hints) = (new, newHints)
    case .deleted: body = nil
    case .decided(let new, let conflicts): (body, closing) = (new, conflicts)
    }
  }

  mutating func differ(dot: Dot, random: inout any RandomNumberGenerator) throws(EngineError) {
    difference = try write(dot: dot, random: &random)
  }

  private func write(dot: Dot, random: inout any RandomNumberGenerator) throws(EngineError) -> DocumentWrite? {
    if isReplaced {
      let generation = stored.flatMap { DocumentStateCodec.generation(of: $0.state[...]) }
      return LocalWrite.replace(key.collection, id, above: generation, body: body, dot: dot, random: &random)
    }
    do throws(LocalWrite.Refusal) {
      if !closing.isEmpty, let state {
        return try LocalWrite.decide(
          key.collection, id, state: state, body: body, closing: closing, dot: dot, random: &random)
      }
      guard let body else { return try LocalWrite.delete(key.collection, id, state: state) }
      return try LocalWrite.write(
        key.collection, id, state: state, body: body, hints: hints, erase: true, dot: dot, random: &random)
    } catch {
      switch error {
      case .generationsExhausted: throw .undeletable(UndeletableDocument(collection: key.collection, id))
      case .otherGeneration: throw .malformedChange("the document was deleted and made anew since it was read")
      }
    }
  }

  /// The state that the fold of a run which makes the document comes to.
  mutating func noteMade(by change: ComposedChange, at view: DocumentWriteView) {
    var writer = CBORWriter(reserving: view.operations.count + 64)
    writer.createdState(
      dot: change.context.dot, timestamp: change.context.timestamp, generation: view.generation,
      operations: change.payload[view.operations])
    stored = LogDocument(isAlive: true, state: writer.bytes)
  }

  mutating func store(
    _ write: AcceptedWrite, in partition: PartitionID, _ transaction: any LogTransaction
  ) throws {
    var new = state ?? DocumentState()
    new.apply(write)
    let document = LogDocument(isAlive: new.isAlive, state: new.encoded)
    try transaction.store(document, over: stored, as: key, in: partition)
    (state, stored) = (new, document)
  }
}

extension DocumentState {
  /// - Throws: for what is no state.
  package init(encoded: [UInt8]) throws(CBORError) {
    let stored = try DocumentStateCodec.decode(encoded[...])
    self.init(generation: stored.generation, groups: stored.groups)
  }

  /// Of the document that is stored under `key`.
  package init(_ stored: LogDocument, of key: DocumentKey) throws(DamagedDocument) {
    guard stored.isIntact else { throw DamagedDocument(key, "its state is not as it was written") }
    do throws(CBORError) { try self.init(encoded: stored.state) } catch {
      throw DamagedDocument(key, "its state does not read, from byte \(error.offset) on")
    }
    guard isAlive == stored.isAlive else { throw DamagedDocument(key, "its state is not what its row says") }
  }

  package var encoded: [UInt8] { DocumentStateCodec.encode(generation: generation, groups: groups) }
}
