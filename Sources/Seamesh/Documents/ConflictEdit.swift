import Engine
import Replication

/// Decides a conflict: an ordinary write, judged on the version that its author was shown and on no other.
struct ConflictEdit: DocumentEdit {
  let conflict: ConflictID
  let id: Value
  let choice: ConflictChoice

  var collection: Text { conflict.key.collection }

  func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    guard let state = present.state, present.etag == conflict.etag else {
      throw NodeError(
        .preconditionFailed, "the document has changed since this conflict was read: list the conflicts again")
    }
    let decisions = state.openDecisions()
    guard decisions.indices.contains(conflict.number - 1) else {
      throw NodeError(.notFound, "there is no such conflict in this version of the document")
    }
    let decision = decisions[conflict.number - 1]
    let body = try body(decision, state.rendered(), present)
    if let body { try DocumentLimits.check(body: body) }
    return .decided(body, closing: decision.conflicts)
  }

  /// Nil where a deleted document stays deleted.
  private func body(
    _ decision: OpenDecision, _ shown: Shown, _ present: PresentDocument
  ) throws(NodeError) -> ValueMap? {
    let wished: Shown
    switch choice {
    case .keep: return present.body
    case .take(let numbers):
      var taken: [Conflict] = []
      for number in numbers {
        guard decision.conflicts.indices.contains(number - 1) else {
          throw NodeError(
            .unprocessable, "this conflict has \(counted(decision.conflicts.count, "value")), and no value \(number)")
        }
        taken.append(decision.conflicts[number - 1])
      }
      guard !taken.isEmpty else { throw NodeError(.unprocessable, "say which value is to be taken") }
      guard let result = shown.taking(taken) else {
        throw NodeError(
          .unprocessable,
          "an increment cannot be taken where no whole number is shown: keep what is shown, or give a value")
      }
      wished = result
    case .value(let value):
      guard decision.place.last?.isMember != true else {
        throw NodeError(.unprocessable, "a member of a set has no other value: keep what is shown, or take what is not")
      }
      wished = shown.setting(decision.place[...], to: value)
    }
    if case .map(let body) = wished.value { return body }
    if case .value = choice { throw NodeError(.unprocessable, "a document is a JSON object") }
    return present.body
  }
}
