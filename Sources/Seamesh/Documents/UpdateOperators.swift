import Replication

/// MongoDB update operators on one document, of which `$set` and `$unset` are built.
package enum UpdateOperators {
  private static let built = ["$set", "$unset"]
  /// Nulls that setting an element beyond the end of an array may put in between; MongoDB sets such a bound too.
  package static let paddingLimit = 1_000

  private enum Action { case set(Value), unset }

  /// Throws `unprocessable` for operators not built yet and for paths that the document has no place for,
  /// `badRequest` for updates of the wrong form.
  package static func apply(_ update: ValueMap, to document: ValueMap) throws(NodeError) -> ValueMap {
    let steps = try steps(update)
    try refuseCollisions(steps.map(\.path))
    var result = document
    for step in steps { try apply(step.action, to: &result, step.path.segments[...], step.path) }
    guard !nests(.map(result), deeperThan: Value.depthLimit) else {
      throw NodeError(
        .tooLarge, "After this update the document would have more than \(Value.depthLimit) levels.",
        limit: .init(Value.depthLimit, "levels"))
    }
    return result
  }

  /// What is wrong with an update whatever document it meets.
  package static func check(_ update: ValueMap) throws(NodeError) { try refuseCollisions(steps(update).map(\.path)) }

  private static func steps(_ update: ValueMap) throws(NodeError) -> [(path: FieldPath, action: Action)] {
    guard !update.isEmpty else { throw NodeError(.badRequest, "An update needs at least one operator, such as $set.") }
    var steps: [(path: FieldPath, action: Action)] = []
    for entry in update.entries {
      guard entry.key.isOperator else {
        throw NodeError(
          .badRequest,
          "“\(entry.key.string.prefix(60))” is no update operator; use application/merge-patch+json to send fields.")
      }
      guard built.contains(entry.key.string) else {
        throw NodeError(
          .unprocessable,
          "The update operator \(entry.key.string.prefix(60)) is not built yet; these are: \(built.joined(separator: " "))."
        )
      }
      guard case .map(let fields) = entry.value else {
        throw NodeError(.badRequest, "\(entry.key.string) needs an object of fields.")
      }
      for field in fields.entries {
        steps.append((try checkedPath(field.key), entry.key == "$set" ? .set(field.value) : .unset))
      }
    }
    return steps
  }

  private static func checkedPath(_ text: Text) throws(NodeError) -> FieldPath {
    let path = try FieldPath(text)
    if path.startsAtID { throw NodeError(.unprocessable, "A document's _id never changes.") }
    if let positional = path.segments.first(where: \.isOperator) {
      throw NodeError(.unprocessable, "“\(positional.string)” in the path \(text.string) is not understood.")
    }
    return path
  }

  /// Two steps at one path, or one above the other, would depend on their order.
  private static func refuseCollisions(_ paths: [FieldPath]) throws(NodeError) {
    let sorted = paths.sorted { $0.segments.lexicographicallyPrecedes($1.segments) }
    for (path, next) in zip(sorted, sorted.dropFirst()) where next.segments.starts(with: path.segments) {
      throw NodeError(.badRequest, "The update names \(path.text.string) and \(next.text.string), which collide.")
    }
  }

  private static func apply(
    _ action: Action, to map: inout ValueMap, _ rest: ArraySlice<Text>, _ path: FieldPath
  ) throws(NodeError) {
    guard let key = rest.first else { return }
    let below = rest.dropFirst()
    if below.isEmpty {
      if case .set(let value) = action { map[key] = value } else { map[key] = nil }
      return
    }
    guard var child = map[key] ?? startOfMissing(action) else { return }
    // Nobody else holds it then, so that it is changed in place: an update may have a path for each of its items.
    if map[key] != nil { map[key] = .null }
    try apply(action, to: &child, below, path)
    map[key] = child
  }

  private static func apply(
    _ action: Action, to value: inout Value, _ rest: ArraySlice<Text>, _ path: FieldPath
  ) throws(NodeError) {
    switch value {
    case .map(var map):
      value = .null
      defer { value = .map(map) }
      try apply(action, to: &map, rest, path)
    case .array(var items):
      value = .null
      defer { value = .array(items) }
      try apply(action, to: &items, rest, path)
    default:
      if case .unset = action { return }
      throw noPlace(path)
    }
  }

  private static func apply(
    _ action: Action, to items: inout [Value], _ rest: ArraySlice<Text>, _ path: FieldPath
  ) throws(NodeError) {
    guard let index = rest.first.flatMap(FieldPath.index) else {
      if case .unset = action { return }
      throw noPlace(path)
    }
    if index >= items.count {
      guard case .set = action else { return }
      guard index - items.count <= paddingLimit else { throw noPlace(path) }
      items.append(contentsOf: repeatElement(.null, count: index - items.count + 1))
      if rest.count > 1 { items[index] = .map(ValueMap()) }
    }
    if rest.count > 1 {
      try apply(action, to: &items[index], rest.dropFirst(), path)
    } else if case .set(let value) = action {
      items[index] = value
    } else {
      // As in MongoDB: taking the element out would move those behind it.
      items[index] = .null
    }
  }

  /// Nil where there is nothing to remove.
  private static func startOfMissing(_ action: Action) -> Value? {
    if case .unset = action { nil } else { .map(ValueMap()) }
  }

  private static func noPlace(_ path: FieldPath) -> NodeError {
    NodeError(.unprocessable, "The document has no place for \(path.text.string): what stands above it cannot hold it.")
  }

  /// `levels` counts maps and arrays, `value` included.
  private static func nests(_ value: Value, deeperThan levels: Int) -> Bool {
    switch value {
    case .map(let map): levels == 0 || map.entries.contains { nests($0.value, deeperThan: levels - 1) }
    case .array(let items): levels == 0 || items.contains { nests($0, deeperThan: levels - 1) }
    default: false
    }
  }
}
