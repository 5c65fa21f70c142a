/// What may pass on one session beside authority, and in which order: what the link under it is let carry.
package struct Passage: Sendable, Equatable {
  package enum Pattern: Sendable, Equatable {
    case partition(PartitionName, PartitionID)
    /// All whose names begin so.
    case prefix(Text)
  }

  /// Nil: all, in no order. Those of the first pattern go before those of the next.
  private let patterns: [Pattern]?
  /// Little is to be under way at once: what has gone out stands before whatever comes up next, and is paid for.
  package let isThin: Bool

  /// Whatever is in common.
  package static let everything = Passage(nil)
  /// Statements of the fleet, and no partition.
  package static let authority = Passage([], isThin: true)

  package init(_ patterns: [Pattern]?, isThin: Bool = false) { (self.patterns, self.isThin) = (patterns, isThin) }

  var isOrdered: Bool { patterns.map { $0.count > 1 } ?? false }
  package var isEverything: Bool { patterns == nil }

  /// Place in the order; nil: it does not pass.
  func rank(_ id: PartitionID, _ name: PartitionName) -> Int? {
    guard let patterns else { return 0 }
    return patterns.firstIndex { pattern in
      switch pattern {
      case .partition(_, let named): named == id
      case .prefix(let prefix): name.text.utf8.starts(with: prefix.utf8)
      }
    }
  }

  /// What is wanted and may pass. A partition that is wanted by its id alone, and whose name nobody knows, passes where it is
  /// named itself.
  func narrowing(_ interest: Interest, _ name: (PartitionID) -> PartitionName?) -> Interest {
    guard let patterns else { return interest }
    var narrowed = Interest(
      partitions: interest.partitions.filter { id in
        patterns.contains { pattern in
          switch pattern {
          case .partition(_, let named): named == id
          case .prefix(let prefix): name(id)?.text.utf8.starts(with: prefix.utf8) ?? false
          }
        }
      })
    for wanted in interest.prefixes { for pattern in patterns { Passage.add(wanted, pattern, to: &narrowed) } }
    return narrowed
  }

  private static func add(_ wanted: Text, _ pattern: Pattern, to narrowed: inout Interest) {
    switch pattern {
    case .partition(let name, let id): if name.text.utf8.starts(with: wanted.utf8) { narrowed.partitions.insert(id) }
    case .prefix(let prefix):
      if prefix.utf8.starts(with: wanted.utf8) {
        narrowed.prefixes.insert(prefix)
      } else if wanted.utf8.starts(with: prefix.utf8) {
        narrowed.prefixes.insert(wanted)
      }
    }
  }
}
