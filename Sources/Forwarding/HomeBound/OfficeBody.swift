import Replication
import Wire

/// What JSONB made of a document, turned back: JSONB has no −0 and does not tell 1e16 from an integer, so whatever an editor left
/// as it was shown stands for what it was.
package enum OfficeBody {
  /// - Parameter read: the document as its editor had it before him.
  package static func exact(_ new: ValueMap, read: ValueMap?) -> ValueMap {
    guard let read, case .map(let map) = exact(.map(new), read: .map(read)) else { return new }
    return map
  }

  private static func exact(_ new: Value, read: Value) -> Value {
    if looksEqual(new, read) { return read }
    switch (new, read) {
    case (.map(let new), .map(let read)):
      let entries = new.entries.map { entry in
        ValueMap.Entry(key: entry.key, value: read[entry.key].map { exact(entry.value, read: $0) } ?? entry.value)
      }
      return ValueMap(entries).map(Value.map) ?? .map(new)
    case (.array(let new), .array(let read)): return .array(exact(new, read: read))
    default: return new
    }
  }

  /// An item that looks as one that was read is that one; any other is compared with that at its place.
  private static func exact(_ new: [Value], read: [Value]) -> [Value] {
    new.enumerated().map { index, item in
      // Most stand where they stood, or beside it.
      for place in [index, index + 1, index - 1] where read.indices.contains(place) && looksEqual(item, read[place]) {
        return read[place]
      }
      if let same = read.first(where: { looksEqual(item, $0) }) { return same }
      return index < read.count ? exact(item, read: read[index]) : item
    }
  }

  /// Whether JSONB shows both alike.
  static func looksEqual(_ a: Value, _ b: Value) -> Bool {
    switch (a, b) {
    case (.int(let a), .double(let b)), (.double(let b), .int(let a)): Double(exactly: a) == b
    case (.double(let a), .double(let b)): a == b || a.isNaN && b.isNaN
    case (.array(let a), .array(let b)): a.count == b.count && zip(a, b).allSatisfy(looksEqual)
    case (.map(let a), .map(let b)):
      a.entries.count == b.entries.count
        && zip(a.entries, b.entries).allSatisfy { $0.key == $1.key && looksEqual($0.value, $1.value) }
    default: a == b
    }
  }
}
