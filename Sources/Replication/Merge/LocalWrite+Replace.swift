extension LocalWrite {
  /// Begins a new life of a document, or ends it (`body` nil), of which nobody here knows what it says: a life that is above
  /// all others hides them, wherever they are known, so that what this write says is all there is (M6).
  ///
  /// - Parameter generation: what the present one may be; nil where that does not read either.
  package static func replace(
    _ collection: Text, _ id: Value, above generation: UInt64?, body: ValueMap?, dot: Dot,
    random: inout some RandomNumberGenerator
  ) -> DocumentWrite {
    let floor = floor(above: generation)
    let even = floor - floor % 2
    guard let body else {
      return DocumentWrite(collection: collection, id: id, kind: .delete, generation: even, operations: [])
    }
    let operations = operations(
      base: .absent, now: .absent, new: body, erase: true, dot: dot, random: &random)
    return DocumentWrite(
      collection: collection, id: id, kind: .create, generation: even + 1, operations: operations)
  }

  private static func floor(above generation: UInt64?) -> UInt64 {
    guard let generation, generation < credibleGeneration else { return unsureGeneration }
    guard generation >= unsureGeneration else { return generation + generationMargin }
    // It was replaced so before.
    return (generation / unsureGeneration + 1) * unsureGeneration
  }

  /// A damaged byte may have said less: more than any one bit of a small number makes.
  private static let generationMargin: UInt64 = 64
  /// Far above what documents come to, and far below ``Malformation/generationLimit``.
  private static let unsureGeneration: UInt64 = 1 << 20
  /// Documents do not come to more by being replaced, and what a damaged byte says must not use up what is left.
  private static let credibleGeneration: UInt64 = 1 << 40
}
