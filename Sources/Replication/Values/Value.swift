/// A value in a document (rule M1). An array or map inside an array is part of that array's value.
///
/// Doubles are never NaN or infinite, map keys are unique and in byte order, and nothing nests deeper than
/// ``depthLimit``: decoders refuse what breaks this, so a `Value` can be taken at its word.
package indirect enum Value: Sendable, Hashable {
  case null
  case bool(Bool)
  case int(Int64)
  case double(Double)
  case string(Text)
  case bytes([UInt8])
  /// Milliseconds since 1970-01-01T00:00:00Z.
  case date(Int64)
  case objectID(ObjectID)
  case uuid(UUIDValue)
  case array([Value])
  case map(ValueMap)
  /// The bytes themselves travel apart; that is not built yet.
  case blob(BlobReference)

  /// Maps and arrays may nest this deep, the document itself being level 1.
  package static let depthLimit = 64
  /// Bytes of one map key.
  package static let keyByteLimit = 1024
}

/// The 12 bytes of a MongoDB object id.
package struct ObjectID: Hashable, Comparable, Sendable {
  package let high: UInt64
  package let low: UInt32

  package static let byteCount = 12

  package init(high: UInt64, low: UInt32) { (self.high, self.low) = (high, low) }

  /// Nil unless there are exactly 12 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == ObjectID.byteCount else { return nil }
    var iterator = bytes.makeIterator()
    self.high = bigEndianWord(&iterator)
    var low: UInt32 = 0
    while let byte = iterator.next() { low = low << 8 | UInt32(byte) }
    self.low = low
  }

  package func append(to out: inout [UInt8]) {
    appendBigEndian(high, to: &out)
    appendBigEndian(low, to: &out)
  }

  package var bytes: [UInt8] {
    var out: [UInt8] = []
    append(to: &out)
    return out
  }

  package static func < (a: ObjectID, b: ObjectID) -> Bool { (a.high, a.low) < (b.high, b.low) }
}

/// The 16 bytes of a UUID.
package struct UUIDValue: SixteenBytes {
  package let high: UInt64
  package let low: UInt64
  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}

/// Keys in byte order with their values.
package struct ValueMap: Hashable, Sendable {
  package struct Entry: Hashable, Sendable {
    package let key: Text
    package let value: Value
    package init(key: Text, value: Value) { (self.key, self.value) = (key, value) }
  }

  package private(set) var entries: [Entry]

  package init() { entries = [] }

  /// Takes entries in any order. Nil when a key stands twice.
  package init?(_ unordered: [Entry]) {
    let sorted = unordered.sorted { $0.key < $1.key }
    guard zip(sorted, sorted.dropFirst()).allSatisfy({ $0.key != $1.key }) else { return nil }
    entries = sorted
  }

  /// Takes entries whose keys are known to ascend.
  package init(ascending entries: [Entry]) { self.entries = entries }

  package var isEmpty: Bool { entries.isEmpty }
  package var count: Int { entries.count }

  package subscript(key: Text) -> Value? {
    get {
      let place = position(of: key)
      return place < entries.count && entries[place].key == key ? entries[place].value : nil
    }
    set {
      let place = position(of: key)
      let found = place < entries.count && entries[place].key == key
      switch (newValue, found) {
      case (let value?, true): entries[place] = Entry(key: key, value: value)
      case (let value?, false): entries.insert(Entry(key: key, value: value), at: place)
      case (nil, true): entries.remove(at: place)
      case (nil, false): break
      }
    }
  }

  private func position(of key: Text) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

extension Value {
  /// Equality is that of rule M2: doubles by their bits, text by its bytes, blobs without their list.
  package static func == (a: Value, b: Value) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.bool(let a), .bool(let b)): a == b
    case (.int(let a), .int(let b)): a == b
    case (.double(let a), .double(let b)): a.bitPattern == b.bitPattern
    case (.string(let a), .string(let b)): a == b
    case (.bytes(let a), .bytes(let b)): a == b
    case (.date(let a), .date(let b)): a == b
    case (.objectID(let a), .objectID(let b)): a == b
    case (.uuid(let a), .uuid(let b)): a == b
    case (.array(let a), .array(let b)): a == b
    case (.map(let a), .map(let b)): a == b
    case (.blob(let a), .blob(let b)): a.isEqual(b)
    default: false
    }
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(canonicalBytes) }
}
