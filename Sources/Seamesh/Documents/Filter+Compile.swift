import Replication

extension Filter {
  private static let fieldOperators = [
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not", "$contains", "$fold",
  ]
  private static let topOperators = ["$and", "$or", "$nor"]
  /// All that a filter may have.
  package static let operators = fieldOperators + topOperators

  /// Throws `badRequest` for what has the wrong form, `unprocessable` for operators that are not understood.
  package init(_ filter: ValueMap) throws(NodeError) { condition = try Filter.compile(filter) }

  private static func compile(_ filter: ValueMap) throws(NodeError) -> Condition {
    var conditions: [Condition] = []
    for entry in filter.entries {
      switch entry.key {
      case "$and": conditions += try compileList(entry)
      case "$or": conditions.append(.any(try compileList(entry)))
      case "$nor": conditions.append(.not(.any(try compileList(entry))))
      case let key where key.isOperator: throw unknown(key, understood: topOperators)
      default: conditions += try compile(entry.value, at: try FieldPath(entry.key))
      }
    }
    return .all(conditions)
  }

  private static func compileList(_ entry: ValueMap.Entry) throws(NodeError) -> [Condition] {
    guard case .array(let items) = entry.value, !items.isEmpty else {
      throw NodeError(.badRequest, "\(entry.key.string) needs an array of at least one filter.")
    }
    var conditions: [Condition] = []
    for item in items {
      guard case .map(let filter) = item else {
        throw NodeError(.badRequest, "\(entry.key.string) needs filters, which are objects.")
      }
      conditions.append(try compile(filter))
    }
    return conditions
  }

  private static func compile(_ operand: Value, at path: FieldPath) throws(NodeError) -> [Condition] {
    // A DBRef has keys with $ and is a value all the same.
    guard case .map(let map) = operand, map["$ref"] == nil, map.entries.contains(where: { $0.key.isOperator }) else {
      return [.field(path, .equal(operand))]
    }
    if let plain = map.entries.first(where: { !$0.key.isOperator }) {
      throw NodeError(
        .badRequest, "At \(path.text.string), operators and the field “\(plain.key.string.prefix(60))” cannot be mixed."
      )
    }
    return try compileOperators(map, at: path)
  }

  private static func compileOperators(_ map: ValueMap, at path: FieldPath) throws(NodeError) -> [Condition] {
    var conditions: [Condition] = []
    for entry in map.entries {
      let operand = entry.value
      switch entry.key {
      case "$eq": conditions.append(.field(path, .equal(operand)))
      case "$ne": conditions.append(.not(.field(path, .equal(operand))))
      case "$gt": conditions.append(.field(path, .greater(operand, orEqual: false)))
      case "$gte": conditions.append(.field(path, .greater(operand, orEqual: true)))
      case "$lt": conditions.append(.field(path, .less(operand, orEqual: false)))
      case "$lte": conditions.append(.field(path, .less(operand, orEqual: true)))
      case "$in": conditions.append(.field(path, .among(try list(entry, at: path))))
      case "$nin": conditions.append(.not(.field(path, .among(try list(entry, at: path)))))
      case "$exists":
        let exists = Condition.field(path, .exists)
        conditions.append(try truth(entry, at: path) ? exists : .not(exists))
      case "$not": conditions.append(.not(.all(try compileNot(operand, at: path))))
      case "$contains": conditions.append(.field(path, .contains(try needle(map, at: path))))
      case "$fold" where map["$contains"] != nil: break
      default: throw unknown(entry.key, understood: fieldOperators)
      }
    }
    return conditions
  }

  private static func compileNot(_ operand: Value, at path: FieldPath) throws(NodeError) -> [Condition] {
    guard case .map(let map) = operand, !map.isEmpty, map.entries.allSatisfy({ $0.key.isOperator }) else {
      throw NodeError(.badRequest, "At \(path.text.string), $not needs an object of operators.")
    }
    return try compileOperators(map, at: path)
  }

  private static func list(_ entry: ValueMap.Entry, at path: FieldPath) throws(NodeError) -> [Value] {
    guard case .array(let items) = entry.value else {
      throw NodeError(.badRequest, "At \(path.text.string), \(entry.key.string) needs an array.")
    }
    return items
  }

  private static func truth(_ entry: ValueMap.Entry, at path: FieldPath) throws(NodeError) -> Bool {
    switch entry.value {
    case .bool(let value): return value
    case .int(0), .int(1): return entry.value == .int(1)
    default: throw NodeError(.badRequest, "At \(path.text.string), \(entry.key.string) needs true or false.")
    }
  }

  private static func needle(_ map: ValueMap, at path: FieldPath) throws(NodeError) -> TextNeedle {
    guard case .string(let text) = map["$contains"] else {
      throw NodeError(.badRequest, "At \(path.text.string), $contains needs a string.")
    }
    var folding: TextFolding = []
    guard case .string(let letters) = map["$fold"] ?? .string("") else {
      throw NodeError(.badRequest, "At \(path.text.string), $fold needs a string.")
    }
    for letter in letters.utf8 {
      switch letter {
      case UInt8(ascii: "c"): folding.insert(.letterCase)
      case UInt8(ascii: "d"): folding.insert(.diacritics)
      default: throw NodeError(.badRequest, "At \(path.text.string), $fold takes c (case) and d (diacritics) only.")
      }
    }
    return TextNeedle(text, folding: folding)
  }

  private static func unknown(_ key: Text, understood: [String]) -> NodeError {
    let instead = key == "$regex" ? " For a text within a text: $contains, with $fold for case and diacritics." : ""
    return NodeError(
      .unprocessable,
      "The operator \(key.string.prefix(60)) is not understood here; these are: \(understood.joined(separator: " "))."
        + instead)
  }
}

extension Text {
  var isOperator: Bool { utf8.first == UInt8(ascii: "$") }
}
