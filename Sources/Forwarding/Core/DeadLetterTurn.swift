/// Which dead letters are tried again: some at each connection and each time that somebody asks, one after the other in their
/// order, so that those which stay refused do not keep the others back for ever.
package struct DeadLetterTurn: Sendable {
  /// Tried again at once.
  package static let window = 1_024
  /// Those behind so many are known to the backend alone.
  package static let limit = DocumentProgress.deadLetterLimit

  /// Of the first ones, had their turn.
  private var passed = 0

  package init() {}

  /// How many the backend is to be asked for, from the first on.
  package var asked: Int { passed + DeadLetterTurn.window }

  /// - Parameter letters: what it answered.
  package mutating func take(_ letters: [DeadLetter]) -> (due: [DeadLetter], isAll: Bool) {
    let isAll = letters.count < asked
    // Others went in meanwhile: from the first on again.
    if letters.count <= passed { passed = 0 }
    let due = Array(letters.dropFirst(passed).prefix(DeadLetterTurn.window))
    passed += due.count
    if passed == letters.count && isAll || passed + DeadLetterTurn.window > DeadLetterTurn.limit { passed = 0 }
    return (due, isAll)
  }
}
