import Replication

/// A change that counts and has effect, with what merging asks of it.
package struct NaiveChange: Sendable {
  package let dot: Dot
  package let timestamp: UInt64
  /// The context of its run: its own chain is left out there.
  package let context: [ReplicaID: NaivePosition]
  package let writes: [DocumentWrite]

  package init(dot: Dot, timestamp: UInt64, context: [ReplicaID: NaivePosition], writes: [DocumentWrite]) {
    (self.dot, self.timestamp, self.context, self.writes) = (dot, timestamp, context, writes)
  }
}

/// A second merge of documents, written from the rules M1–M11 and M17 and from nothing else: every operation of a document is held
/// against every other one. Slow, and plain enough to be read beside the text.
///
/// Of a write and its re-issues only the one that has effect is merged (C22, M17).
package enum NaiveMerge {
  /// `sight`: what the contexts of changes cover where chains have forked. `groups`: writes and their re-issues. In the
  /// order of documents (M11): collection bytes, then canonical id.
  package static func documents(
    _ changes: [NaiveChange], sight: NaiveSight = NaiveSight(), groups: [NaiveGroup] = []
  ) -> [NaiveDocument] {
    let groups = NaiveGroups(groups)
    let hasSeen = changes.map { author in changes.map { groups.isKnown($0.dot, to: author, sight) } }
    var found: [NaiveDocument.Key: [NaiveOperation]] = [:]
    for (number, change) in changes.enumerated() {
      let stamp = NaiveStamp(timestamp: change.timestamp, dot: change.dot)
      for write in change.writes {
        let key = NaiveDocument.Key(collection: Array(write.collection.string.utf8), id: OracleBytes.of(write.id))
        found[key, default: []] += NaiveOperation.all(of: write, change: number, stamp: stamp, groups)
      }
    }
    return found.sorted { NaiveDocument.Key.areInOrder($0.key, $1.key) }.map { key, operations in
      document(key, operations, hasSeen)
    }
  }

  private static func document(
    _ key: NaiveDocument.Key, _ operations: [NaiveOperation], _ hasSeen: [[Bool]]
  ) -> NaiveDocument {
    // M5: what no accepted operation dominates survives.
    let survivors = operations.filter { e in
      e.leavesEntry && !operations.contains { o in dominates(o, e, hasSeen) }
    }
    // M10: the generation is the greatest accepted. Odd: alive, showing survivors of that generation only.
    let generation = operations.map(\.generation).max() ?? 0
    let isAlive = generation % 2 == 1
    let root = isAlive ? NaiveNode.document(of: survivors.filter { $0.generation == generation }) : nil
    return NaiveDocument(
      key: key, generation: generation, body: root?.value,
      inbox: NaiveInbox.conflicts(among: survivors, generation: generation, root: root))
  }

  /// M5: between operations of different changes, and only where the one has the other in its context.
  private static func dominates(_ o: NaiveOperation, _ e: NaiveOperation, _ hasSeen: [[Bool]]) -> Bool {
    o.change != e.change && hasSeen[o.change][e.change] && overrides(o, e)
  }

  /// M6.
  private static func overrides(_ o: NaiveOperation, _ e: NaiveOperation) -> Bool {
    // Create and delete dominate everything of lower generation.
    if o.kind == .create || o.kind == .delete { return e.generation < o.generation }
    // Any other o only if its generation is not the lower one.
    guard o.generation >= e.generation else { return false }
    // The three exceptions "spares" hold within one generation only.
    let maySpare = o.generation == e.generation
    // A set-remove dominates the set-add of the same member and nothing else.
    if o.kind == .drop { return e.path == o.path && e.kind == .add }
    if e.path == o.path {
      // The same path: yes, but an increment spares numbers and increments.
      let spares = o.kind == .increment && (e.isNumber || e.kind == .increment)
      return !(spares && maySpare)
    }
    // e below o: yes.
    if o.path.begins(e.path) { return true }
    // e above o: yes, but a remove dominates nothing above it …
    guard e.path.begins(o.path), o.kind != .remove else { return false }
    // … and a key spares {}, an element or member spares [].
    let next = o.path.segments[e.path.segments.count]
    let spares: Bool = if case .key = next { e.opened == .map } else { e.opened == .array }
    return !(spares && maySpare)
  }
}
