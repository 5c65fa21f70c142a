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
    // Made where an item has moved: most stand where they stood.
    var places: [Value: Int]?
    return new.enumerated().map { index, item in
      if index < read.count, looksEqual(item, read[index]) { return read[index] }
      let found = places ?? Dictionary(read.enumerated().map { (shown($1), $0) }) { first, _ in first }
      places = found
      if let same = found[shown(item)] { return read[same] }
      return index < read.count ? exact(item, read: read[index]) : item
    }
  }

  /// The same of all values that JSONB shows alike.
  private static func shown(_ value: Value) -> Value {
    switch value {
    case .int(let number): Double(exactly: number).map(Value.double) ?? value
    case .double(let number): .double(number == 0 ? 0 : number)
    case .array(let items): .array(items.map(shown))
    case .map(let map):
      .map(ValueMap(ascending: map.entries.map { ValueMap.Entry(key: $0.key, value: shown($0.value)) }))
    default: value
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
