/// The rules for a replica's own writes (M10, M14–M16): what it says about a document when someone saves it.
package enum LocalWrite {
  package enum Refusal: Error, Hashable, Sendable {
    /// The version read was of another life of the document (M14).
    case otherGeneration(read: UInt64, present: UInt64)
    /// ``Malformation/generationLimit`` is reached.
    case generationsExhausted
  }

  /// The operations that turn the version read into `new`, in the order in which they are written.
  ///
  /// - Parameters:
  ///   - base: the version read.
  ///   - now: what is shown in the state whose vector becomes the change's context; `base` itself where nothing came in
  ///     between.
  ///   - new: the new body, without `_id`.
  ///   - erase: whether keys that `new` lacks are removed, too.
  ///   - dot: that of the change which is being made; it names the list elements that are inserted.
  package static func operations(
    base: Shown, now: Shown, new: ValueMap, hints: WriteHints = .none, erase: Bool, dot: Dot,
    random: inout some RandomNumberGenerator
  ) -> [Operation] {
    var differ = Differ(dot: dot, erase: erase, random: random)
    defer { random = differ.random }
    return differ.operations([], hints, base: base, now: now, new: .map(new))
  }

  /// Creates, re-creates or edits a document; nil where nothing differs.
  ///
  /// - Parameters:
  ///   - state: the document now, in the state whose vector becomes the change's context.
  ///   - read: the version that `body` was made from; nil: `state`.
  package static func write(
    _ collection: Text, _ id: Value, state: DocumentState?, read: DocumentState? = nil, body: ValueMap,
    hints: WriteHints = .none, erase: Bool, dot: Dot, random: inout some RandomNumberGenerator
  ) throws(Refusal) -> DocumentWrite? {
    let state = state ?? DocumentState()
    let read = read ?? state
    guard read.generation == state.generation else {
      throw .otherGeneration(read: read.generation, present: state.generation)
    }
    let now = state.rendered()
    let operations = operations(
      base: read == state ? now : read.rendered(), now: now, new: body, hints: hints, erase: erase, dot: dot,
      random: &random)
    if !state.isAlive {
      let generation = try next(state.generation)
      return DocumentWrite(
        collection: collection, id: id, kind: .create, generation: generation, operations: operations)
    }
    guard !operations.isEmpty else { return nil }
    return DocumentWrite(
      collection: collection, id: id, kind: .edit, generation: state.generation, operations: operations)
  }

  /// Ends a document; nil where it is not alive.
  package static func delete(
    _ collection: Text, _ id: Value, state: DocumentState?
  ) throws(Refusal) -> DocumentWrite? {
    guard let state, state.isAlive else { return nil }
    let generation = try next(state.generation)
    return DocumentWrite(collection: collection, id: id, kind: .delete, generation: generation, operations: [])
  }

  private static func next(_ generation: UInt64) throws(Refusal) -> UInt64 {
    guard generation < Malformation.generationLimit - 1 else { throw .generationsExhausted }
    return generation + 1
  }
}
