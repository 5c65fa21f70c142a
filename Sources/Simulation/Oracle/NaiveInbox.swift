import Replication

/// M11: survivors whose effect is not shown.
enum NaiveInbox {
  /// `root`: the document as shown; nil where it is not alive.
  static func conflicts(among survivors: [NaiveOperation], generation: UInt64, root: NaiveNode?) -> [NaiveConflict] {
    let hidden = survivors.filter { !isShown($0, generation: generation, root: root) }
    let increments = sums(hidden.filter { $0.kind == .increment })
    let values = hidden.filter { $0.kind != .increment && $0.opened == nil }.map { conflict($0, $0.value) }
    let markers = hidden.filter { $0.opened != nil }.map { conflict($0, $0.value) }
    // A marker with a listed entry below it is not listed. What is below a listed marker is below what is above that one,
    // so markers speak for markers, too.
    let candidates = increments + values + markers
    let alone = markers.filter { marker in
      !candidates.contains { OraclePath(marker.path).begins(OraclePath($0.path)) }
    }
    return (increments + values + alone).sorted(by: areInOrder)
  }

  private static func isShown(_ entry: NaiveOperation, generation: UInt64, root: NaiveNode?) -> Bool {
    let place = root?.node(at: entry.path)
    return switch entry.kind {
    // Equal (M2) to the winning write at its path: a counter's base; {} or [] for an implied container.
    case .set: place.map { OracleBytes.of($0.base) } == entry.value.map(OracleBytes.of)
    // A member that is shown.
    case .add: place != nil
    // A remove whose path shows nothing.
    case .remove: place == nil
    // An increment takes effect in the number that its own life of the document shows.
    case .increment: place?.kind == .number && entry.generation == generation
    case .create, .delete, .drop: true
    }
  }

  /// Increments of one replica at one path and generation are one entry: their wrapped sum (0: none), the last one's
  /// sequence and hlc.
  private static func sums(_ increments: [NaiveOperation]) -> [NaiveConflict] {
    increments.compactMap { entry in
      let lot = increments.filter {
        $0.stamp.dot.replica == entry.stamp.dot.replica && $0.path == entry.path && $0.generation == entry.generation
      }
      let isLast = !lot.contains { $0.stamp.dot.sequence > entry.stamp.dot.sequence }
      let sum = sum(lot)
      return isLast && sum != 0 ? conflict(entry, .int(sum)) : nil
    }
  }

  /// M9: wrapped, so that no order of increments matters.
  static func sum(_ increments: [NaiveOperation]) -> Int64 {
    increments.reduce(0) { sum, entry in
      if case .int(let amount)? = entry.value { sum &+ amount } else { sum }
    }
  }

  private static func conflict(_ entry: NaiveOperation, _ value: Value?) -> NaiveConflict {
    NaiveConflict(
      generation: entry.generation, path: entry.path.segments, kind: entry.kind.rawValue, value: value,
      dot: entry.stamp.dot, timestamp: entry.stamp.timestamp)
  }

  /// (generation, canonical path, replica, sequence).
  private static func areInOrder(_ a: NaiveConflict, _ b: NaiveConflict) -> Bool {
    if a.generation != b.generation { return a.generation < b.generation }
    let (pathA, pathB) = (OraclePath(a.path), OraclePath(b.path))
    if pathA != pathB { return OraclePath.areInOrder(pathA, pathB) }
    return (a.dot.replica.high, a.dot.replica.low, a.dot.sequence)
      < (b.dot.replica.high, b.dot.replica.low, b.dot.sequence)
  }
}
