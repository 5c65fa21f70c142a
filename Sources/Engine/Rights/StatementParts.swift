import Replication

/// A narrowing or raise with longer lists than one statement holds is said in several (rule C12).
struct StatementParts {
  /// Below the limit of a statement by what stands in it beside the lists.
  var byteLimit = StatementParts.defaultByteLimit
  static let defaultByteLimit = 1_000_000
  /// Devices that have said much. One part names statements of one of them at the most: whoever lacks what a part names has to keep
  /// it beside the set until the part is there (rule C26), and keeps as much as one device may say.
  var talkers: Set<PublicKey> = []

  private enum Piece {
    case ends(Text, [Statement.ChainEnd])
    /// Of one device, where it has said much.
    case tips(Text, [Statement.Tip], of: PublicKey? = nil)
    case keep(Text)

    /// At most, as it is encoded.
    var byteCount: Int {
      switch self {
      case .ends(let partition, let chains): partition.utf8.count + 16 + chains.count * 48
      case .tips(let scope, let tips, _): scope.utf8.count + 16 + tips.count * 84
      case .keep(let pattern): pattern.utf8.count + 4
      }
    }

    var talker: PublicKey? { if case .tips(_, _, let talker) = self { talker } else { nil } }
  }

  /// As it is, where it fits.
  func split(_ body: Statement.Body) -> [Statement.Body] {
    guard let listing = body.listing else { return [body] }
    var parts: [[Piece]] = [[]]
    var bytes = 0
    var talker: PublicKey?
    for piece in pieces(of: listing) {
      let isOfAnother = piece.talker != nil && talker != nil && piece.talker != talker
      if bytes + piece.byteCount > byteLimit && bytes > 0 || isOfAnother {
        parts.append([])
        (bytes, talker) = (0, nil)
      }
      parts[parts.count - 1].append(piece)
      bytes += piece.byteCount
      talker = piece.talker ?? talker
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
    return ends + listing.tips.flatMap(pieces) + listing.keep.map(Piece.keep)
  }

  private func pieces(of group: Statement.ScopeTips) -> [Piece] {
    // Those of a room lead to nothing that is bounded by what a device says in the fleet.
    func isApart(_ tip: Statement.Tip) -> Bool { group.scope.utf8.isEmpty && talkers.contains(tip.issuer) }
    let others = group.tips.filter { !isApart($0) }
    let apart = Dictionary(grouping: group.tips.filter(isApart), by: \.issuer).sorted { $0.key < $1.key }
    return others.inSteps(of: Self.pieceLimit).map { Piece.tips(group.scope, $0) }
      + apart.flatMap { device, tips in
        tips.inSteps(of: Self.pieceLimit).map { Piece.tips(group.scope, $0, of: device) }
      }
  }

  private static func listing(_ pieces: [Piece], more: Bool) -> Statement.Listing {
    var (ends, tips, keep): ([Statement.PartitionEnds], [Statement.ScopeTips], [Text]) = ([], [], [])
    for piece in pieces {
      switch piece {
      case .ends(let partition, let chains):
        ends.append(Statement.PartitionEnds(partition: partition, chains: chains))
      case .tips(let scope, let list, _): tips.append(Statement.ScopeTips(scope: scope, tips: list))
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
