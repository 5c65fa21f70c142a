extension DocumentWrite {
  /// The write as a change that is issued again says it: elements that other changes of the lost branch inserted stand
  /// under the dots of their re-issues now (rules C22, M4).
  package func renamingElements(_ renamed: [Dot: Dot]) -> DocumentWrite {
    DocumentWrite(
      collection: collection, id: id, kind: kind, generation: generation,
      operations: operations.map { operation in
        Operation(
          operation.kind, operation.path.map { $0.renamed(renamed) }, value: operation.value,
          position: operation.position)
      })
  }
}

extension PathSegment {
  fileprivate func renamed(_ renamed: [Dot: Dot]) -> PathSegment {
    guard case .element(let element) = self, let dot = renamed[element.dot] else { return self }
    return .element(ListElement(position: element.position, dot: dot))
  }
}
