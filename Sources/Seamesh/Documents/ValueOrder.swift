import Replication

/// The order of values in sorts and comparisons, after MongoDB's: first by kind of value, then within it.
///
/// int64 and double are one kind and compare by their exact numbers. Text compares by bytes. It is not the order of
/// canonical bytes, which keeps the two kinds of number apart.
enum ValueOrder {
  /// Values of different kinds are never equal, and `$gt` and its like do not reach from one kind to the other.
  static func kind(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .int, .double: 1
    case .string: 2
    case .map: 3
    case .array: 4
    case .bytes: 5
    case .uuid: 6
    case .objectID: 7
    case .bool: 8
    case .date: 9
    case .blob: 10
    }
  }

  /// Negative, zero or positive.
  static func compare(_ a: Value, _ b: Value) -> Int {
    switch (a, b) {
    case (.int(let a), .int(let b)): sign(a, b)
    case (.int(let a), .double(let b)): compare(a, b)
    case (.double(let a), .int(let b)): -compare(b, a)
    case (.double(let a), .double(let b)): sign(a, b)
    case (.string(let a), .string(let b)): sign(a, b)
    case (.bool(let a), .bool(let b)): sign(a ? 1 : 0, b ? 1 : 0)
    case (.date(let a), .date(let b)): sign(a, b)
    case (.objectID(let a), .objectID(let b)): sign(a, b)
    case (.uuid(let a), .uuid(let b)): sign(a, b)
    case (.bytes(let a), .bytes(let b)): compare(a, b)
    case (.array(let a), .array(let b)): compare(a, b)
    case (.map(let a), .map(let b)): compare(a, b)
    case (.blob(let a), .blob(let b)): sign(a.hash, b.hash)
    default: sign(kind(a), kind(b))
    }
  }

  static func equal(_ a: Value, _ b: Value) -> Bool { compare(a, b) == 0 }

  private static func sign<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : b < a ? 1 : 0 }

  /// Without rounding: 2⁵³ + 1 is greater than 2⁵³ as a double.
  private static func compare(_ a: Int64, _ b: Double) -> Int {
    let rounded = Double(a)
    if rounded != b { return rounded < b ? -1 : 1 }
    guard let b = Int64(exactly: b) else { return -1 }
    return sign(a, b)
  }

  private static func compare(_ a: [UInt8], _ b: [UInt8]) -> Int {
    if a.count != b.count { return sign(a.count, b.count) }
    return a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
  }

  private static func compare(_ a: [Value], _ b: [Value]) -> Int {
    for (a, b) in zip(a, b) {
      let order = compare(a, b)
      if order != 0 { return order }
    }
    return sign(a.count, b.count)
  }

  private static func compare(_ a: ValueMap, _ b: ValueMap) -> Int {
    for (a, b) in zip(a.entries, b.entries) {
      let order = sign(a.key, b.key)
      if order != 0 { return order }
      let inner = compare(a.value, b.value)
      if inner != 0 { return inner }
    }
    return sign(a.count, b.count)
  }
}
