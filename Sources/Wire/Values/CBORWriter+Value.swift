import Replication

extension CBORWriter {
  /// Writes a document's value (`Docs/PROTOCOL.md`, "Values").
  package mutating func value(_ value: Value) {
    switch value {
    case .null: null()
    case .bool(let value): bool(value)
    case .int(let value): int(value)
    case .double(let value): double(value)
    case .string(let value): text(value)
    case .bytes(let value): byteString(value)
    case .date(let milliseconds):
      tag(CBOR.Tag.date)
      int(milliseconds)
    case .objectID(let id):
      tag(CBOR.Tag.objectID)
      head(.bytes, UInt64(ObjectID.byteCount))
      bigEndian(id.high, byteCount: 8)
      bigEndian(UInt64(id.low), byteCount: 4)
    case .uuid(let id):
      tag(CBOR.Tag.uuid)
      uuid(id)
    case .array(let items):
      arrayHeader(items.count)
      for item in items { self.value(item) }
    case .map(let map): self.map(map)
    case .blob(let blob):
      tag(CBOR.Tag.blob)
      arrayHeader(4)
      digest(blob.hash)
      int(blob.size)
      text(blob.type)
      if let list = blob.listHash { digest(list) } else { byteString([]) }
    }
  }

  /// Encoded keys begin with their length, so shorter ones come first: another order than that of ``ValueMap``.
  private mutating func map(_ map: ValueMap) {
    mapHeader(map.count)
    let entries = map.entries.sorted { a, b in
      let (left, right) = (a.key.utf8.count, b.key.utf8.count)
      return left == right ? a.key < b.key : left < right
    }
    for entry in entries {
      text(entry.key)
      value(entry.value)
    }
  }
}

extension Value {
  /// Appends the value's encoding.
  package func encode(to writer: inout CBORWriter) { writer.value(self) }
}
