import Replication

/// Which fields of a document are shown: only those named (`{"name": 1, "crew.name": 1}`) or all but them (`0`).
///
/// Maps in arrays are cut one by one. `_id` belongs to every result; `{"_id": 0}` is left to the one who writes it out,
/// see ``showsID``.
package struct Projection: Sendable {
  private indirect enum Node: Sendable {
    case leaf
    case branch([Text: Node])
  }

  private var root = Node.branch([:])
  private let includes: Bool
  package let showsID: Bool

  package init(_ fields: ValueMap) throws(NodeError) {
    var modes: [(path: FieldPath, includes: Bool)] = []
    var showsID = true
    for entry in fields.entries {
      let includes = try Projection.mode(entry)
      if entry.key == "_id" { showsID = includes } else { modes.append((try FieldPath(entry.key), includes)) }
    }
    self.showsID = showsID
    includes = modes.first?.includes ?? (fields["_id"] != nil && showsID)
    for mode in modes {
      guard mode.includes == includes else {
        throw NodeError(.badRequest, "A projection either names what is shown (1) or what is not (0), not both.")
      }
      try Projection.insert(mode.path, mode.path.segments[...], into: &root)
    }
  }

  private static func mode(_ entry: ValueMap.Entry) throws(NodeError) -> Bool {
    switch entry.value {
    case .bool(let value): return value
    case .int(let number): return number != 0
    case .double(let number): return number != 0
    default:
      throw NodeError(
        .unprocessable, "The projection of \(entry.key.string.prefix(60)) must be 1 or 0; operators are not understood."
      )
    }
  }

  private static func insert(
    _ path: FieldPath, _ rest: ArraySlice<Text>, into node: inout Node
  ) throws(NodeError) {
    guard case .branch(var children) = node else { throw collision(path) }
    guard let first = rest.first else {
      guard children.isEmpty else { throw collision(path) }
      node = .leaf
      return
    }
    var child = children[first] ?? .branch([:])
    try insert(path, rest.dropFirst(), into: &child)
    children[first] = child
    node = .branch(children)
  }

  private static func collision(_ path: FieldPath) -> NodeError {
    NodeError(.badRequest, "The projection names \(path.text.string) and a field above or below it.")
  }

  package func apply(_ body: ValueMap) -> ValueMap { cut(body, root) }

  private func cut(_ map: ValueMap, _ node: Node) -> ValueMap {
    guard case .branch(let children) = node else { return map }
    return ValueMap(
      ascending: map.entries.compactMap { entry in
        switch children[entry.key] {
        case nil: includes ? nil : entry
        case .leaf: includes ? entry : nil
        case .some(let child): cut(entry.value, child).map { ValueMap.Entry(key: entry.key, value: $0) }
        }
      })
  }

  private func cut(_ value: Value, _ node: Node) -> Value? {
    switch value {
    case .map(let map): .map(cut(map, node))
    case .array(let items): .array(items.compactMap { cut($0, node) })
    default: includes ? nil : value
    }
  }
}
