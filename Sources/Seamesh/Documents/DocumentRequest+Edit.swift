import Engine
import Replication

/// What a request makes of the document that is there.
extension DocumentRequest: DocumentEdit {
  package var isWhole: Bool {
    guard condition == nil else { return false }
    switch action {
    case .put(_, keepAbsent: false), .delete: return true
    default: return false
    }
  }

  package func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    try DocumentLimits.check(collection: collection)
    try DocumentLimits.check(id: id)
    if let condition { try check(condition, present) }
    guard let body = try body(from: present) else { return .deleted }
    try DocumentLimits.check(body: body, inPlaceOf: present.body)
    return .body(body, hints: .none)
  }

  /// Nil to delete it.
  private func body(from present: PresentDocument) throws(NodeError) -> ValueMap? {
    let body = present.body ?? ValueMap()
    switch action {
    case .put(let new, let keepAbsent): return keepAbsent ? body.overlaid(with: new) : new
    case .insert(let new):
      try check(.isAbsent, present)
      return new
    case .insertOnce(let new):
      guard present.state != nil else { return new }
      guard let body = present.body else {
        throw NodeError(.preconditionFailed, "the document that was made under this key was deleted")
      }
      return body
    case .mergePatch(let patch, let upsert):
      try checkPresence(present, orUpsert: upsert)
      return MergePatch.apply(patch, to: body)
    case .update(let operators, let upsert):
      // First what can never be done: an operator that is not built yet is told also where the document is missing.
      let new = try UpdateOperators.apply(operators, to: body)
      try checkPresence(present, orUpsert: upsert)
      return new
    case .delete:
      try checkPresence(present, orUpsert: present.isDamaged)
      return nil
    }
  }

  private func checkPresence(_ present: PresentDocument, orUpsert upsert: Bool) throws(NodeError) {
    guard present.body != nil || upsert else { throw NodeError(.notFound, "there is no such document") }
  }

  private func check(_ condition: Condition, _ present: PresentDocument) throws(NodeError) {
    let etag = present.body == nil ? nil : present.etag
    guard !condition.holds(etag: etag) else { return }
    let now =
      switch (condition, etag) {
      case (.isAbsent, _): "a document with this id is there already"
      case (_, nil): present.state == nil ? "there is no such document" : "the document was deleted"
      case (_, let etag?): "the document has changed: it has ETag \(etag)"
      }
    throw NodeError(.preconditionFailed, now)
  }
}

/// One of several requests that are done together or not at all: where it is refused, one is told which it was.
struct NumberedRequest: DocumentEdit {
  let request: DocumentRequest
  /// From 1.
  let number: Int

  var collection: Text { request.collection }
  var id: Value { request.id }
  var isWhole: Bool { request.isWhole }

  func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    do {
      return try request.outcome(on: present)
    } catch let error as NodeError {
      throw error.ofOperation(number, request)
    }
  }
}

extension DocumentRequest {
  /// Its collection and id, as a person is told of it.
  package var place: String { "\(collection.string) \(DamagedDocument.text(of: id))" }
}

extension NodeError {
  fileprivate func ofOperation(_ number: Int, _ request: DocumentRequest) -> NodeError {
    return NodeError(
      code, "operation \(number) (\(request.place)): \(message)", lackOfRight: lackOfRight, limit: limit,
      operation: number)
  }
}

extension WriteReceipt {
  init(_ receipt: ChangeReceipt) { self.init(dot: receipt.dot, etags: receipt.etags, created: receipt.created) }
}
