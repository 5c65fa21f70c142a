extension DocumentState {
  /// The changes that the state stands on: of each replica the highest that an entry is of, or that inserted a list element
  /// which an entry names. Whoever shows the state has seen these, and those of the same replicas before them.
  package var changes: [ReplicaID: UInt64] {
    var highest: [ReplicaID: UInt64] = [:]
    func note(_ dot: Dot) { highest[dot.replica] = max(dot.sequence, highest[dot.replica] ?? 0) }
    for entry in entries {
      note(entry.dot)
      for case .element(let element) in entry.path { note(element.dot) }
    }
    return highest
  }

  /// The changes of which the write replaces an entry.
  package func changes(replacedBy write: AcceptedWrite) -> [Dot] {
    let dominators = Dominators([write.entries], of: [write.context])
    return entries.filter { dominators.dominate($0) }.map(\.dot)
  }
}
