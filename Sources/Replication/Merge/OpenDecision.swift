/// Conflicts of a document that stand or fall together: what is kept against one of them is kept against all (M16).
package struct OpenDecision: Hashable, Sendable {
  /// Where it is decided: as far as their paths are shown, and a step further where nothing is. Empty: the document itself,
  /// which is deleted.
  package let place: [PathSegment]
  /// What is shown there; nil where nothing is.
  package let shown: Value?
  /// In the order of the inbox; never empty.
  package let conflicts: [Conflict]
}

extension DocumentState {
  /// Conflicts of one document that are told at once, or one decision where that has more; all stay in the state.
  package static let toldConflicts = 64

  /// Whether there may be something to decide, found cheaply: what one replica wrote alone it had seen, and local writes hide
  /// nothing of their own. But who ended a life of the document may have left no entry.
  package var mayHaveConflicts: Bool { entries.contains { $0.generation != generation } || changes.count > 1 }

  /// The inbox, by places in the order of the document. A function of the state.
  package func openDecisions() -> [OpenDecision] {
    guard mayHaveConflicts else { return [] }
    let shown = rendered()
    var groups: [[PathSegment]: [Conflict]] = [:]
    for conflict in inbox(shown: shown) {
      groups[isAlive ? shown.place(deciding: conflict.path) : [], default: []].append(conflict)
    }
    return groups.sorted { $0.key.order($1.key) == .before }.map { place, conflicts in
      OpenDecision(place: place, shown: isAlive ? shown[path: place]?.value : nil, conflicts: conflicts)
    }
  }
}

extension Shown {
  /// Where ``LocalWrite/keep(_:closing:)`` writes against an entry at `path`, or above it.
  fileprivate func place(deciding path: [PathSegment]) -> [PathSegment] {
    var (node, place) = (self, [PathSegment]())
    for segment in path {
      guard let child = node[segment] else { return node.isContainer ? place + [segment] : place }
      (node, place) = (child, place + [segment])
    }
    return place
  }
}

extension [PathSegment] {
  /// For people: keys with dots between; an element of a list is `[]`, a member of a set `{}`.
  package var places: Text {
    Text(
      map { segment in
        switch segment {
        case .key(let key): key.string
        case .element: "[]"
        case .member: "{}"
        }
      }.joined(separator: "."))
  }
}
