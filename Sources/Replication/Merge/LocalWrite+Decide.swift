extension LocalWrite {
  /// Makes a document what somebody decided, and closes the conflicts that he decided on, in one write: what of them the difference
  /// alone would leave open is closed as ``keep(_:_:state:closing:)`` does. Nil where nothing is to be written.
  ///
  /// - Parameter body: nil: a deleted document stays so.
  package static func decide(
    _ collection: Text, _ id: Value, state: DocumentState, body: ValueMap?, closing conflicts: [Conflict], dot: Dot,
    random: inout some RandomNumberGenerator
  ) throws(Refusal) -> DocumentWrite? {
    guard let body else {
      return conflicts.first.map { keep(collection, id, state: state, closing: $0) }
    }
    var decided = try write(collection, id, state: state, body: body, erase: true, dot: dot, random: &random)
    // As clocks mostly have it: what is written last has the latest stamp.
    let trial = WriteContext(dot: dot, timestamp: HybridTimestamp(rawValue: .max), context: state.seen)
    for _ in conflicts {
      var after = state
      if let decided { after.apply(AcceptedWrite(trial, decided)) }
      let shown = after.rendered()
      let open = Set(after.inbox(shown: shown))
      guard let conflict = conflicts.first(where: open.contains) else { break }
      let next = DocumentWrite(
        collection: collection, id: id, kind: decided?.kind ?? .edit,
        generation: decided?.generation ?? state.generation,
        operations: (decided?.operations ?? []) + [keep(shown, closing: conflict)])
      // Where the difference writes there already, nothing more can be said; what stays open is listed again.
      guard trial.malformation(of: [next]) == nil else { break }
      decided = next
    }
    return decided
  }
}

extension DocumentState {
  /// Of whoever has seen all that it stands on.
  fileprivate var seen: VersionVector {
    VersionVector(changes.mapValues { ChainPosition(sequence: $0, tip: .zero) })
  }
}
