import Replication

/// Writes payloads and operations in their one form: documents and operations ascend, whatever order they come in.
///
/// What rule M4 forbids is not looked for here: ``PayloadScanner`` is the one judge, of own changes too.
package enum PayloadEncoder {
  /// The payload of the change `dot`.
  package static func encode(_ writes: [DocumentWrite], dot: Dot) -> [UInt8] {
    var writer = CBORWriter(reserving: 512)
    writer.arrayHeader(writes.count)
    for write in sorted(writes) {
      writer.arrayHeader(5)
      writer.text(write.collection)
      writer.value(write.id)
      writer.unsigned(write.kind.rawValue)
      writer.unsigned(write.generation)
      writer.operations(write.operations, dot: dot)
    }
    return writer.bytes
  }

  /// The writes in payload order, which is that of ``ChangeHeader/keyHashes`` too.
  package static func sorted(_ writes: [DocumentWrite]) -> [DocumentWrite] {
    guard writes.count > 1 else { return writes }
    return writes.map { (key: DocumentKey(collection: $0.collection, id: $0.id), write: $0) }
      .sorted { $0.key < $1.key }.map(\.write)
  }
}

extension CBORWriter {
  /// An array of operations, ascending by the path at which they take effect. `dot` is the change that makes them: its
  /// own elements are named by their position alone.
  package mutating func operations(_ operations: [Operation], dot: Dot) {
    arrayHeader(operations.count)
    for place in EntryPaths(operations, dot: dot).ascending { operation(operations[place], dot: dot) }
  }

  private mutating func operation(_ operation: Operation, dot: Dot) {
    let isInsert = operation.kind == .listInsert
    arrayHeader(2 + (operation.value == nil ? 0 : 1) + (isInsert ? 1 : 0))
    unsigned(operation.kind.rawValue)
    path(operation.path, dot: dot)
    if let value = operation.value { self.value(value) }
    if isInsert { byteString(operation.position) }
  }

  private mutating func path(_ path: [PathSegment], dot: Dot) {
    if path.count == 1, case .key(let key) = path[0] { return text(key) }
    arrayHeader(path.count)
    for segment in path {
      switch segment {
      case .key(let key): text(key)
      case .element(let element):
        arrayHeader(element.dot == dot ? 1 : 3)
        byteString(element.position)
        guard element.dot != dot else { continue }
        replica(element.dot.replica)
        unsigned(element.dot.sequence)
      case .member: preconditionFailure("operations name the set; its member is their value")
      }
    }
  }
}
