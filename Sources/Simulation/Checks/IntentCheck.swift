import Engine
import Replication

/// What a write asked for is what its node shows.
struct IntentCheck: Check {
  let known: Knowledge

  /// A write is made upon all that its node accepts, so right behind its commit the document is what was asked for: the
  /// last word of those jobs of a transaction that were `written` (rules M14 and M16).
  func check(_ transaction: [KeptIntent], of written: Set<Int>, by process: NodeProcess) {
    guard process.node.isJudged else { return }
    let state = process.engine.state
    var last: [Intent.Place: KeptIntent] = [:]
    for kept in transaction {
      if case .merged = kept.intent.wanted {
        last[kept.intent.place] = nil
      } else if written.contains(kept.intent.job) {
        last[kept.intent.place] = kept
      }
    }
    world.report.intents += last.count
    for kept in last.values {
      let partition = state.identity.id(of: kept.intent.partition)
      if let log = state.mesh.partitions[partition]?.log, IntentCheck.isBlind(state.own.context(in: partition), log) {
        continue
      }
      guard let mistake = mistake(in: kept.state, kept.intent.wanted) else { continue }
      world.violate(
        "own write", "node \(process.node.slot), \(kept.intent.partition.text.string), \(kept.intent.key): \(mistake)")
    }
  }

  /// Rule C3 keeps an entry that lies on the path of a forked chain above what counts, and by rule C23 that entry reaches no
  /// further than the fork: until more counts, a write does not replace what counts above the fork (seed 773).
  private static func isBlind(_ context: VersionVector, _ log: PartitionLog) -> Bool {
    context.entries.contains { replica, position in
      log.forkPoints[replica] != nil && position.sequence > log.accepted.sequence(of: replica)
    }
  }

  private func mistake(in state: DocumentState?, _ wanted: Intent.Wanted) -> String? {
    let shown = state?.shown()
    switch wanted {
    case .body(let body, let hints):
      let (asked, found) = (IntentCheck.asShown(.map(body), hints), shown.map { Value.map($0) })
      return found.map(OracleBytes.of) == OracleBytes.of(asked)
        ? nil : "\(asked) was asked for, and \(String(describing: found)) is shown"
    case .merged: return nil
    case .gone: return shown == nil ? nil : "it was deleted and is there"
    case .decided(let asked, let conflicts):
      let isSame = asked.map { OracleBytes.of(.map($0)) } == shown.map { OracleBytes.of(.map($0)) }
      guard isSame else { return "\(String(describing: asked)) was decided, and \(String(describing: shown)) is shown" }
      let open = Set(state?.inbox() ?? [])
      return conflicts.first(where: open.contains).map { "\($0) was closed and is open" }
    }
  }

  /// A body as it reads once it is stored: sets in the order of their members, each once.
  private static func asShown(_ value: Value, _ hints: WriteHints) -> Value {
    switch (value, hints.kind) {
    case (.map(let map), _):
      let entries = map.entries.map { ValueMap.Entry(key: $0.key, value: asShown($0.value, hints.below(.key($0.key)))) }
      return .map(ValueMap(ascending: entries))
    case (.array(let items), .set):
      var members: [[UInt8]: Value] = [:]
      for item in items { members[OracleBytes.of(item)] = item }
      return .array(members.sorted { OracleBytes.areInOrder($0.key, $1.key) }.map(\.value))
    case (.array(let items), .list): return .array(items.map { asShown($0, hints.below(.anyElement)) })
    default: return value
    }
  }
}
