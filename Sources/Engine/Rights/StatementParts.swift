import Replication

/// A narrowing or raise with longer lists than one statement holds is said in several (rule C12).
struct StatementParts {
  /// Below the limit of a statement by what stands in it beside the lists.
  var byteLimit = StatementParts.defaultByteLimit
  static let defaultByteLimit = 1_000_000

  private enum Piece {
    case ends(Text, [Statement.ChainEnd])
    case tips(Text, [Statement.Tip])
    case keep(Text)

    /// At most, as it is encoded.
    var byteCount: Int {
      switch self {
      case .ends(let partition, let chains): partition.utf8.count + 16 + chains.count * 48
      case .tips(let scope, let tips): scope.utf8.count + 16 + tips.count * 84
      case .keep(let pattern): pattern.utf8.count + 4
      }
    }
  }

  /// As it is, where it fits.
  func split(_ body: Statement.Body) -> [Statement.Body] {
    guard let listing = body.listing else { return [body] }
    var parts: [[Piece]] = [[]]
    var bytes = 0
    for piece in pieces(of: listing) {
      if bytes + piece.byteCount > byteLimit, bytes > 0 {
        parts.append([])
        bytes = 0
      }
      parts[parts.count - 1].append(piece)
      bytes += piece.byteCount
    }
    guard parts.count > 1 else { return [body] }
    return parts.enumerated().map { body.with(StatementParts.listing($1, more: $0 < parts.count - 1)) }
  }

  private static let pieceLimit = 512

  private func pieces(of listing: Statement.Listing) -> [Piece] {
    let ends = listing.ends.flatMap { group -> [Piece] in
      group.chains.isEmpty
        ? [.ends(group.partition, [])] : group.chains.inSteps(of: Self.pieceLimit).map { .ends(group.partition, $0) }
    }
    let tips = listing.tips.flatMap { group in
      group.tips.inSteps(of: Self.pieceLimit).map { Piece.tips(group.scope, $0) }
    }
    return ends + tips + listing.keep.map(Piece.keep)
  }

  private static func listing(_ pieces: [Piece], more: Bool) -> Statement.Listing {
    var (ends, tips, keep): ([Statement.PartitionEnds], [Statement.ScopeTips], [Text]) = ([], [], [])
    for piece in pieces {
      switch piece {
      case .ends(let partition, let chains):
        ends.append(Statement.PartitionEnds(partition: partition, chains: chains))
      case .tips(let scope, let list): tips.append(Statement.ScopeTips(scope: scope, tips: list))
      case .keep(let pattern): keep.append(pattern)
      }
    }
    return Statement.Listing(ends: ends, tips: tips, keep: keep, more: more)
  }
}

extension Array {
  fileprivate func inSteps(of count: Int) -> [[Element]] {
    stride(from: 0, to: self.count, by: count).map { Array(self[$0..<Swift.min($0 + count, self.count)]) }
  }
}

extension Statement.Body {
  fileprivate var listing: Statement.Listing? {
    switch self {
    case .grant(let grant): grant.listing
    case .end(let end): end.listing
    case .raise(let raise): raise.listing
    default: nil
    }
  }

  fileprivate func with(_ listing: Statement.Listing) -> Statement.Body {
    switch self {
    case .grant(let grant):
      .grant(Statement.Grant(subject: grant.subject, level: grant.level, pattern: grant.pattern, listing: listing))
    case .end(let end): .end(Statement.End(reason: end.reason, target: end.target, listing: listing))
    case .raise(let raise): .raise(Statement.Raise(end: raise.end, listing: listing))
    default: self
    }
  }
}
