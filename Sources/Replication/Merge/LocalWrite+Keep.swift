extension LocalWrite {
  /// Closes an entry of the inbox everywhere and changes nothing that is shown (M16).
  package static func keep(
    _ collection: Text, _ id: Value, state: DocumentState, closing conflict: Conflict
  ) -> DocumentWrite {
    guard state.isAlive else {
      // Said again in the same generation, by a change that has seen the entry.
      return DocumentWrite(
        collection: collection, id: id, kind: .delete, generation: state.generation, operations: [])
    }
    let operation = keep(state.rendered(), closing: conflict)
    return DocumentWrite(
      collection: collection, id: id, kind: .edit, generation: state.generation, operations: [operation])
  }

  /// Writes again what is shown at the deepest shown path of the entry.
  package static func keep(_ now: Shown, closing conflict: Conflict) -> Operation {
    var (node, path) = (now, [PathSegment]())
    for segment in conflict.path {
      guard let child = node[segment] else {
        if !node.isContainer { break }
        return absence(of: segment, at: path, conflict)
      }
      (node, path) = (child, path + [segment])
    }
    // A marker would wipe what is below, so one leaf speaks for a container.
    while node.kind == .map || node.kind == .list, let child = node.children.first {
      (node, path) = (child.shown, path + [child.segment])
    }
    if node.kind == .set, let member = node.children.first {
      return Operation(.setAdd, path, value: member.shown.value)
    }
    return again(node, at: path)
  }

  private static func absence(of segment: PathSegment, at path: [PathSegment], _ conflict: Conflict) -> Operation {
    switch segment {
    case .key: Operation(.remove, path + [segment])
    case .element: Operation(.listRemove, path + [segment])
    case .member: Operation(.setRemove, path, value: conflict.value)
    }
  }

  /// A value again. Operations name the set, not the member, where a conflict that is closed already leads to one.
  private static func again(_ node: Shown, at path: [PathSegment]) -> Operation {
    if case .member? = path.last { return Operation(.setAdd, path.dropLast(), value: node.value) }
    return Operation(.set, path, value: node.value)
  }
}

extension Shown {
  var isContainer: Bool {
    switch kind {
    case .map, .list, .set: true
    case .absent, .scalar, .number: false
    }
  }
}
