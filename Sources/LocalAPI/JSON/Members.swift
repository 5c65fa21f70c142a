import Replication

/// Reads an object whose members are fixed: an unknown name or a wrong type is refused by name.
struct Members {
  private let map: ValueMap
  private let what: String

  init(_ map: ValueMap, of what: String, allowed: [Text]) throws(Problem) {
    if let stray = map.entries.first(where: { !allowed.contains($0.key) }) {
      let names = allowed.map(\.string).joined(separator: ", ")
      throw .unprocessable("\(what) has no member \(stray.key.string); it takes: \(names)")
    }
    (self.map, self.what) = (map, what)
  }

  /// JSON null counts as absent.
  subscript(name: Text) -> Value? { map[name] == .null ? nil : map[name] }

  func string(_ name: Text) throws(Problem) -> Text {
    guard let text = try optionalString(name) else { throw .unprocessable("\(what) needs the member \(name.string)") }
    return text
  }

  func optionalString(_ name: Text) throws(Problem) -> Text? {
    guard let value = self[name] else { return nil }
    guard case .string(let text) = value else { throw wrong(name, "a string") }
    return text
  }

  func object(_ name: Text) throws(Problem) -> ValueMap {
    guard let map = try optionalObject(name) else { throw .unprocessable("\(what) needs the member \(name.string)") }
    return map
  }

  func optionalObject(_ name: Text) throws(Problem) -> ValueMap? {
    guard let value = self[name] else { return nil }
    guard case .map(let map) = value else { throw wrong(name, "an object") }
    return map
  }

  func array(_ name: Text) throws(Problem) -> [Value] {
    guard case .array(let items)? = self[name] else { throw wrong(name, "an array") }
    return items
  }

  func flag(_ name: Text) throws(Problem) -> Bool {
    guard let value = self[name] else { return false }
    guard case .bool(let flag) = value else { throw wrong(name, "true or false") }
    return flag
  }

  func count(_ name: Text) throws(Problem) -> Int? {
    guard let value = self[name] else { return nil }
    switch value {
    case .int(let number) where number >= 0: return Int(number)
    // 5.0 is an integer in JSON.
    case .double(let number) where number >= 0:
      guard let count = Int(exactly: number) else { throw wrong(name, "an integer, 0 or more") }
      return count
    default: throw wrong(name, "an integer, 0 or more")
    }
  }

  private func wrong(_ name: Text, _ expected: String) -> Problem {
    .unprocessable("the member \(name.string) of \(what) must be \(expected)")
  }
}
