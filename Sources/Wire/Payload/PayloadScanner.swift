import Replication

/// Judges payloads (rule M4) in one pass, by offsets, without an allocation per operation.
///
/// Keep one for many payloads: it keeps the room in which paths are compared. Operations ascend strictly by the path at
/// which they take effect, so each need only be compared with the one before it: an ancestor's bytes begin those of all
/// that lies between it and its descendant.
package struct PayloadScanner {
  private var reader = CBORReader([])
  private var dot = Dot(replica: .zero, sequence: 0)
  private var operationCount = 0
  private var elementDots: [ReplicaID: UInt64] = [:]
  private var previousID: [UInt8] = []
  private var id: [UInt8] = []
  private var previousPath: [UInt8] = []
  private var path: [UInt8] = []
  /// Start of the operation whose path ``path`` is: the next one is compared with it.
  private var pathOwner: Int?

  package init() {}

  /// - Parameters:
  ///   - payload: the buffer whose indices the result's ranges are.
  ///   - dot: the change whose payload it is.
  package mutating func scan(_ payload: ArraySlice<UInt8>, dot: Dot) throws(PayloadError) -> PayloadScan {
    guard payload.count <= Run.changePayloadByteLimit else {
      throw PayloadError(
        .tooLong(byteCount: payload.count, limit: Run.changePayloadByteLimit), at: payload.startIndex)
    }
    (reader, self.dot, operationCount) = (CBORReader(payload), dot, 0)
    elementDots.removeAll()
    let documents = try scanDocuments()
    try reading(try reader.finish())
    return PayloadScan(documents: documents, operationCount: operationCount, elementDots: elementDots)
  }

  private mutating func scanDocuments() throws(PayloadError) -> [DocumentWriteView] {
    let start = reader.offset
    let count = try reading(try reader.readArrayHeader())
    guard (1...Run.documentLimit).contains(count) else {
      throw PayloadError(.documentCount(count, limit: Run.documentLimit), at: start)
    }
    var documents: [DocumentWriteView] = []
    documents.reserveCapacity(count)
    for _ in 0..<count {
      let document = try scanDocument()
      if let previous = documents.last { try checkAscent(from: previous, to: document) }
      documents.append(document)
    }
    return documents
  }

  private mutating func scanDocument() throws(PayloadError) -> DocumentWriteView {
    try reading(try reader.readArrayHeader(count: 5))
    let collection = try scanCollection()
    let id = try scanID()
    let kindOffset = reader.offset
    guard let kind = DocumentWrite.Kind(rawValue: try reading(try reader.readUnsigned(UInt8.self))) else {
      throw PayloadError(.documentKind, at: kindOffset)
    }
    let generationOffset = reader.offset
    let generation = try reading(try reader.readUnsigned())
    guard (1..<CBOR.ordinalLimit).contains(generation), (generation % 2 == 0) == (kind == .delete) else {
      throw PayloadError(.generation, at: generationOffset)
    }
    let start = reader.offset
    let count = try scanOperations()
    guard kind == .create || (count == 0) == (kind == .delete) else { throw PayloadError(.operations, at: start) }
    return DocumentWriteView(
      collection: collection, id: id, kind: kind, generation: generation, operations: start..<reader.offset,
      operationCount: count)
  }

  private mutating func scanCollection() throws(PayloadError) -> Range<Int> {
    let start = reader.offset
    let name = try reading(try reader.readTextRange())
    guard (1...Payload.collectionByteLimit).contains(name.count) else {
      throw PayloadError(.collectionLength(name.count, limit: Payload.collectionByteLimit), at: start)
    }
    return name
  }

  private mutating func scanID() throws(PayloadError) -> Range<Int> {
    let start = reader.offset
    let isID =
      switch try reading(try reader.nextMajor()) {
      case .unsigned, .negative, .text: true
      case .tag: try isTaggedID()
      case .bytes, .array, .map, .simple: false
      }
    guard isID else { throw PayloadError(.idType, at: start) }
    try reading(try reader.scanValue())
    // Canonical bytes outnumber encoded ones only by escapes, so the exact count is seldom needed.
    guard reader.offset - start > Payload.idByteLimit / 2 else { return start..<reader.offset }
    var again = CBORReader(reader.bytes[start..<reader.offset])
    path.removeAll(keepingCapacity: true)
    try reading(try again.readCanonicalBytes(to: &path))
    guard path.count <= Payload.idByteLimit else {
      throw PayloadError(.idLength(limit: Payload.idByteLimit), at: start)
    }
    return start..<reader.offset
  }

  private func isTaggedID() throws(PayloadError) -> Bool {
    var ahead = reader
    let tag = try reading(try ahead.readTag())
    return tag == CBOR.Tag.objectID || tag == CBOR.Tag.uuid
  }

  /// Ascending by collection bytes, then canonical id: so none stands twice.
  private mutating func checkAscent(
    from previous: DocumentWriteView, to document: DocumentWriteView
  ) throws(PayloadError) {
    switch reader.compare(previous.collection, document.collection) {
    case .before: return
    case .after: break
    case .equal:
      previousID.removeAll(keepingCapacity: true)
      id.removeAll(keepingCapacity: true)
      try previous.appendCanonicalID(in: reader.bytes, to: &previousID)
      try document.appendCanonicalID(in: reader.bytes, to: &id)
      if previousID.lexicographicallyPrecedes(id) { return }
    }
    throw PayloadError(.documentOrder, at: document.collection.lowerBound)
  }
}

extension PayloadScanner {
  private mutating func scanOperations() throws(PayloadError) -> Int {
    let start = reader.offset
    let count = try reading(try reader.readArrayHeader())
    operationCount += count
    guard operationCount <= Run.operationLimit else {
      throw PayloadError(.operationCount(limit: Run.operationLimit), at: start)
    }
    pathOwner = nil
    var previous: OperationShape?
    for _ in 0..<count {
      let operation = try scanOperation()
      if let previous { try checkOrder(previous, operation) }
      previous = operation
    }
    return count
  }

  private mutating func scanOperation() throws(PayloadError) -> OperationShape {
    let start = reader.offset
    let fieldCount = try reading(try reader.readArrayHeader())
    guard let kind = Operation.Kind(rawValue: try reading(try reader.readUnsigned(UInt8.self))) else {
      throw PayloadError(.operationKind, at: start)
    }
    guard fieldCount == kind.fieldCount else { throw PayloadError(.operationShape, at: start) }
    var operation = OperationShape(kind: kind, start: start)
    try scanPath(&operation)
    if fieldCount > 2 { try scanValue(&operation) }
    if kind == .listInsert { operation.position = try scanPosition() }
    return operation
  }

  private mutating func scanPath(_ operation: inout OperationShape) throws(PayloadError) {
    let start = reader.offset
    var endsInElement = false
    if try reading(try reader.nextMajor()) == .text {
      operation.onlyKey = try scanKey(isFirst: true)
      operation.segmentCount = 1
    } else {
      let count = try reading(try reader.readArrayHeader())
      guard (1...Payload.segmentLimit - operation.kind.addedSegments).contains(count) else {
        throw PayloadError(.path, at: start)
      }
      for index in 0..<count {
        endsInElement = try reading(try reader.nextMajor()) == .array
        guard endsInElement else {
          _ = try scanKey(isFirst: index == 0)
          continue
        }
        guard index > 0 else { throw PayloadError(.path, at: start) }
        try scanElement()
      }
      guard count > 1 else { throw PayloadError(.pathForm, at: start) }
      operation.segmentCount = count
    }
    operation.path = start..<reader.offset
    switch operation.kind {
    case .set, .listInsert, .setAdd, .setRemove: break
    case .remove, .increment: if endsInElement { throw PayloadError(.pathEnd, at: start) }
    case .listRemove: if !endsInElement { throw PayloadError(.pathEnd, at: start) }
    }
  }

  private mutating func scanKey(isFirst: Bool) throws(PayloadError) -> Range<Int> {
    let start = reader.offset
    let key = try reading(try reader.readTextRange())
    guard key.count <= Value.keyByteLimit else { throw PayloadError(.encoding(.tooLong), at: start) }
    if isFirst, key.count == 3, reader.withContent(key, { $0.elementsEqual("_id".utf8) }) {
      throw PayloadError(.path, at: start)
    }
    return key
  }

  private mutating func scanElement() throws(PayloadError) {
    let start = reader.offset
    let count = try reading(try reader.readArrayHeader())
    guard count == 1 || count == 3 else { throw PayloadError(.operationShape, at: start) }
    _ = try scanPosition()
    guard count == 3 else { return }
    let replica = try reading(try reader.readReplica())
    let sequence = try reading(try reader.readOrdinal())
    guard replica != dot.replica else {
      // An element of this very change is named by its position alone, so no path has two forms.
      guard sequence < dot.sequence else { throw PayloadError(.element, at: start) }
      return
    }
    elementDots[replica] = max(sequence, elementDots[replica] ?? 0)
  }

  private mutating func scanPosition() throws(PayloadError) -> Range<Int> {
    let start = reader.offset
    let position = try reading(try reader.readByteRange())
    guard (1...ListElement.positionByteLimit).contains(position.count) else {
      throw PayloadError(.positionLength(limit: ListElement.positionByteLimit), at: start)
    }
    return position
  }

  private mutating func scanValue(_ operation: inout OperationShape) throws(PayloadError) {
    let start = reader.offset
    let initial = try reading(try reader.initialByte())
    // The document is level 1, and each segment leads one level down.
    try reading(try reader.scanValue(depth: operation.segmentCount + operation.kind.addedSegments + 1))
    operation.value = start..<reader.offset
    switch operation.kind {
    case .set, .listInsert:
      operation.isMarker = initial == CBOR.emptyMap || initial == CBOR.emptyArray
      guard initial >> 5 != CBOR.Major.map.rawValue || operation.isMarker else {
        throw PayloadError(.mapValue, at: start)
      }
    case .increment:
      // The one byte 00 is the integer 0.
      guard initial >> 5 <= CBOR.Major.negative.rawValue, initial != 0 else {
        throw PayloadError(.increment, at: start)
      }
    case .remove, .listRemove, .setAdd, .setRemove: break
    }
  }
}

/// Where the parts of one operation lie.
private struct OperationShape {
  let kind: Operation.Kind
  let start: Int
  var path = 0..<0
  var segmentCount = 0
  /// The key, where the path is one key and nothing is added to it: by far the most frequent kind of path.
  var onlyKey: Range<Int>?
  var value = 0..<0
  var position = 0..<0
  var isMarker = false

  init(kind: Operation.Kind, start: Int) { (self.kind, self.start) = (kind, start) }
}

extension PayloadScanner {
  private mutating func checkOrder(_ previous: OperationShape, _ operation: OperationShape) throws(PayloadError) {
    if let before = previous.onlyKey, let key = operation.onlyKey, previous.kind.addedSegments == 0,
      operation.kind.addedSegments == 0
    {
      // Keys alone compare as their entry paths do, and none is above another.
      switch reader.compare(before, key) {
      case .before: return
      case .equal: throw PayloadError(.pathTwice, at: operation.start)
      case .after: throw PayloadError(.operationOrder, at: operation.start)
      }
    }
    if pathOwner == previous.start {
      swap(&previousPath, &path)
    } else {
      try appendEntryPath(of: previous, to: &previousPath)
    }
    try appendEntryPath(of: operation, to: &path)
    pathOwner = operation.start
    guard previousPath.lexicographicallyPrecedes(path) else {
      throw PayloadError(previousPath == path ? .pathTwice : .operationOrder, at: operation.start)
    }
    guard previous.isMarker || !EntryPath.isPrefix(previousPath, of: path) else {
      throw PayloadError(.pathAbove, at: operation.start)
    }
  }

  private func appendEntryPath(of operation: OperationShape, to out: inout [UInt8]) throws(PayloadError) {
    out.removeAll(keepingCapacity: true)
    do throws(CBORError) {
      var cursor = CBORReader(reader.bytes[operation.path])
      try cursor.readEntryPath(dot: dot, to: &out)
      switch operation.kind {
      case .listInsert:
        reader.withContent(operation.position) { EntryPath.appendElement($0, dot, to: &out) }
      case .setAdd, .setRemove:
        out.append(EntryPath.memberTag)
        var value = CBORReader(reader.bytes[operation.value])
        try value.readCanonicalBytes(to: &out)
      case .set, .remove, .increment, .listRemove: break
      }
    } catch {
      throw PayloadError(error)
    }
  }
}

extension CBORReader {
  /// Appends the path at the cursor in the bytes of rule M2.
  fileprivate mutating func readEntryPath(dot: Dot, to out: inout [UInt8]) throws(CBORError) {
    let count = try nextMajor() == .text ? 1 : readArrayHeader()
    for _ in 0..<count {
      guard try nextMajor() == .array else {
        try readCanonicalBytes(to: &out)
        continue
      }
      let fieldCount = try readArrayHeader()
      let position = try readByteRange()
      let owner = fieldCount == 1 ? dot : Dot(replica: try readReplica(), sequence: try readOrdinal())
      withContent(position) { EntryPath.appendElement($0, owner, to: &out) }
    }
  }
}
