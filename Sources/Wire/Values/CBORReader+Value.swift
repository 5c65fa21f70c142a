import Replication

extension CBORReader {
  /// Reads a document's value.
  ///
  /// - Parameter depth: the level at which an array or map would stand here, the document itself being level 1; those
  ///   below ``Value/depthLimit`` are refused.
  package mutating func readValue(depth: Int = 1) throws(CBORError) -> Value {
    switch try nextMajor() {
    case .unsigned, .negative: .int(try readInt())
    case .bytes: .bytes(Array(try readBytes()))
    case .text: .string(try readText())
    case .array: .array(try readItems(depth: depth))
    case .map: .map(try readEntries(depth: depth))
    case .tag: try readTagged()
    case .simple: try readSimple()
    }
  }

  /// Checks a value as ``readValue(depth:)`` does, without building it.
  package mutating func scanValue(depth: Int = 1) throws(CBORError) {
    switch try nextMajor() {
    case .unsigned, .negative: _ = try readInt()
    case .bytes: _ = try readByteRange()
    case .text: _ = try readTextRange()
    case .array:
      for _ in 0..<(try containerCount(depth: depth)) { try scanValue(depth: depth + 1) }
    case .map:
      var previous: Range<Int>?
      for _ in 0..<(try containerCount(depth: depth)) {
        _ = try readKeyRange(after: &previous)
        try scanValue(depth: depth + 1)
      }
    case .tag: try scanTagged()
    case .simple: try skipSimple()
    }
  }

  /// Appends the canonical bytes (rule M2) of the value at the cursor.
  mutating func readCanonicalBytes(to out: inout [UInt8]) throws(CBORError) {
    switch try nextMajor() {
    case .text:
      out.append(0x06)
      withContent(try readTextRange()) { out.append(escaped: $0) }
    case .bytes:
      out.append(0x07)
      withContent(try readByteRange()) { out.append(escaped: $0) }
    case .unsigned, .negative:
      out.append(0x04)
      out.append(bigEndian: UInt64(bitPattern: try readInt()) ^ 1 << 63)
    case .tag: try readCanonicalTagged(to: &out)
    case .array, .map, .simple: try readValue().appendCanonicalBytes(to: &out)
    }
  }

  /// Object ids and UUIDs, which most documents have as their id, without building a value.
  private mutating func readCanonicalTagged(to out: inout [UInt8]) throws(CBORError) {
    var ahead = self
    switch try ahead.readTag() {
    case CBOR.Tag.objectID:
      out.append(0x09)
      out.append(contentsOf: bytes[try ahead.readByteRange(count: ObjectID.byteCount)])
      self = ahead
    case CBOR.Tag.uuid:
      out.append(0x0a)
      out.append(contentsOf: bytes[try ahead.readByteRange(count: UUIDValue.byteCount)])
      self = ahead
    default: try readValue().appendCanonicalBytes(to: &out)
    }
  }

  private mutating func readItems(depth: Int) throws(CBORError) -> [Value] {
    let count = try containerCount(depth: depth)
    var items: [Value] = []
    items.reserveCapacity(min(count, CBORReader.reservationLimit))
    for _ in 0..<count { items.append(try readValue(depth: depth + 1)) }
    return items
  }

  private mutating func readEntries(depth: Int) throws(CBORError) -> ValueMap {
    let count = try containerCount(depth: depth)
    var entries: [ValueMap.Entry] = []
    entries.reserveCapacity(min(count, CBORReader.reservationLimit))
    var previous: Range<Int>?
    for _ in 0..<count {
      let key = text(at: try readKeyRange(after: &previous))
      entries.append(ValueMap.Entry(key: key, value: try readValue(depth: depth + 1)))
    }
    entries.sort { $0.key < $1.key }
    return ValueMap(ascending: entries)
  }

  /// A value in memory is many times the one byte that it may take here, so room is made as items really come.
  private static let reservationLimit = 64

  private mutating func containerCount(depth: Int) throws(CBORError) -> Int {
    guard depth <= Value.depthLimit else { throw CBORError(.tooDeep, at: offset) }
    return try nextMajor() == .map ? readMapHeader() : readArrayHeader()
  }

  private mutating func readKeyRange(after previous: inout Range<Int>?) throws(CBORError) -> Range<Int> {
    let start = offset
    let content = try readTextRange()
    guard content.count <= Value.keyByteLimit else { throw CBORError(.tooLong, at: start) }
    try checkAscent(from: previous, to: start..<offset)
    previous = start..<offset
    return content
  }

  private mutating func readTagged() throws(CBORError) -> Value {
    let start = offset
    switch try readTag() {
    case CBOR.Tag.date: return .date(try readInt())
    case CBOR.Tag.uuid: return .uuid(try readUUID())
    case CBOR.Tag.objectID:
      let content = try readByteRange(count: ObjectID.byteCount).lowerBound
      let low = wordContent(at: content + 4)
      return .objectID(ObjectID(high: wordContent(at: content), low: UInt32(truncatingIfNeeded: low)))
    case CBOR.Tag.blob: return .blob(try readBlob())
    case CBOR.Tag.decimal128: throw CBORError(.reservedTag, at: start)
    default: throw CBORError(.unknownTag, at: start)
    }
  }

  private mutating func scanTagged() throws(CBORError) {
    let start = offset
    switch try readTag() {
    case CBOR.Tag.date: _ = try readInt()
    case CBOR.Tag.uuid: _ = try readByteRange(count: UUIDValue.byteCount)
    case CBOR.Tag.objectID: _ = try readByteRange(count: ObjectID.byteCount)
    case CBOR.Tag.blob: _ = try readBlob()
    case CBOR.Tag.decimal128: throw CBORError(.reservedTag, at: start)
    default: throw CBORError(.unknownTag, at: start)
    }
  }

  private mutating func readBlob() throws(CBORError) -> BlobReference {
    try readArrayHeader(count: 4)
    let hash = try readDigest()
    let sizeStart = offset
    let size = try readUnsigned()
    guard size <= UInt64(BlobReference.sizeLimit) else { throw CBORError(.outOfRange, at: sizeStart) }
    let type = try readText()
    let listStart = offset
    let list = try readByteRange()
    let listHash = list.count == Digest.byteCount ? digest(at: list) : nil
    guard list.isEmpty || listHash != nil,
      let blob = BlobReference(hash: hash, size: Int64(size), type: type, listHash: listHash)
    else { throw CBORError(.wrongLength, at: listStart) }
    return blob
  }

  private mutating func readSimple() throws(CBORError) -> Value {
    let initial = try initialByte()
    switch initial {
    case CBOR.halfFloat, CBOR.singleFloat, CBOR.doubleFloat: return .double(try readDouble())
    default:
      try skipSimple()
      return initial == CBOR.null ? .null : .bool(initial == CBOR.true)
    }
  }
}
