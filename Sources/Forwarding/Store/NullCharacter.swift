import Replication

extension Text {
  var holdsNull: Bool { utf8.contains(0) }
}

extension Value {
  /// The character U+0000 in a text; no key has it.
  var holdsNull: Bool {
    switch self {
    case .string(let text): text.holdsNull
    case .blob(let blob): blob.type.holdsNull
    case .array(let items): items.contains(where: \.holdsNull)
    case .map(let map): map.entries.contains { $0.value.holdsNull }
    case .null, .bool, .int, .double, .bytes, .date, .objectID, .uuid: false
    }
  }
}
