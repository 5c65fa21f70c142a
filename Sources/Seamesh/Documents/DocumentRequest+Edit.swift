import Engine
import Replication

/// What a request makes of the document that is there.
extension DocumentRequest: DocumentEdit {
  package func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    try DocumentLimits.check(collection: collection)
    try DocumentLimits.check(id: id)
    try checkVersion(present)
    guard let body = try body(from: present.body) else { return .deleted }
    try DocumentLimits.check(body: body)
    return .body(body, hints: .none)
  }

  private func checkVersion(_ present: PresentDocument) throws(NodeError) {
    guard let wanted = ifMatch else { return }
    guard present.body != nil else {
      throw NodeError(.preconditionFailed, "the document has changed: it has gone")
    }
    let etag = present.etag
    guard wanted == etag else { throw NodeError(.preconditionFailed, "the document has changed: it has ETag \(etag)") }
  }

  /// Nil to delete it.
  private func body(from present: ValueMap?) throws(NodeError) -> ValueMap? {
    switch action {
    case .put(let new, let eraseAbsent): return eraseAbsent ? new : (present ?? ValueMap()).overlaid(with: new)
    case .insert(let new):
      guard present == nil else { throw NodeError(.preconditionFailed, "a document with this id is there already") }
      return new
    case .mergePatch(let patch): return MergePatch.apply(patch, to: present ?? ValueMap())
    case .update(let operators):
      guard let present else { throw NodeError(.notFound, "there is no such document") }
      return try UpdateOperators.apply(operators, to: present)
    case .delete:
      guard present != nil else { throw NodeError(.notFound, "there is no such document") }
      return nil
    }
  }
}

extension WriteReceipt {
  init(_ receipt: ChangeReceipt) { self.init(dot: receipt.dot, etags: receipt.etags, created: receipt.created) }
}
