import Links
import Replication

/// Which partitions are walked together: those that one pattern names and none before it does.
package struct LaneFilter: Equatable, Sendable {
  /// Partitions, or beginnings of their names with `*` behind.
  package let pattern: Text
  package let earlier: [Text]

  package func holds(_ name: PartitionName) -> Bool {
    LaneFilter.names(pattern, name) && !earlier.contains { LaneFilter.names($0, name) }
  }

  private static func names(_ pattern: Text, _ name: PartitionName) -> Bool {
    pattern.utf8.last == UInt8(ascii: "*")
      ? name.text.utf8.starts(with: pattern.utf8.dropLast()) : name.text == pattern
  }
}

/// How far the backend follows the log: all partitions together or, over a link with an order, one pattern after the other.
struct ForwardLanes: Sendable {
  /// A walk over the log in order of arrival.
  struct Lane: Sendable {
    /// Nil: all partitions.
    let filter: LaneFilter?
    var runsAfter: Int64 = 0
    var documents = DocumentProgress()
    fileprivate(set) var isAtEnd = false
  }

  private(set) var allowance = LinkAllowance.free
  /// The link has another order than the lanes: the ledger is to be read, which tells what was sent of each.
  var isOutdated: Bool { patterns.map { $0 != ordered.compactMap(\.filter?.pattern) } ?? false }
  private var whole = Lane(filter: nil)
  /// In the order in which they go; used while the link has one.
  private var ordered: [Lane] = []

  /// The first that is not at its end.
  private var place: Int { ordered.firstIndex { !$0.isAtEnd } ?? max(0, ordered.count - 1) }

  /// What is looked at next.
  var current: Lane {
    get { ordered.isEmpty ? whole : ordered[place] }
    set { if ordered.isEmpty { whole = newValue } else { ordered[place] = newValue } }
  }

  /// Nothing of a partition may pass: statements alone are looked at.
  var isForAuthority: Bool {
    switch allowance.passage {
    case .everything: false
    case .partitions(let patterns): patterns.isEmpty
    case .authority, .nothing: true
    }
  }

  /// The link does not carry everything: at its end the backend may lack some.
  var isHeldBack: Bool { allowance.passage != .everything }

  /// Of which changes pass; nil: all.
  var carriedPatterns: [Text]? {
    switch allowance.passage {
    case .everything: nil
    case .partitions(let patterns): patterns
    case .authority, .nothing: []
    }
  }

  // MARK: What happens

  /// The ledger was read: all is looked at from there.
  mutating func begin(runsAfter: Int64, _ documents: DocumentProgress) {
    whole = Lane(filter: nil, runsAfter: runsAfter, documents: documents)
    order(patterns ?? ordered.compactMap(\.filter?.pattern))
  }

  /// Answers whether it is another one.
  mutating func allow(_ allowance: LinkAllowance) -> Bool {
    guard allowance != self.allowance else { return false }
    self.allowance = allowance
    return true
  }

  /// Nil: what was begun is gone on with once more than authority may pass again.
  private var patterns: [Text]? {
    switch allowance.passage {
    case .everything: []
    case .partitions(let patterns): patterns
    case .authority, .nothing: nil
    }
  }

  private mutating func order(_ patterns: [Text]) {
    ordered = patterns.enumerated().map { index, pattern in
      var lane = Lane(filter: LaneFilter(pattern: pattern, earlier: Array(patterns[..<index])))
      (lane.runsAfter, lane.documents) = (whole.runsAfter, whole.documents.elsewhere)
      return lane
    }
  }

  /// There may be something new anywhere.
  mutating func lookAgain() {
    for index in ordered.indices { ordered[index].isAtEnd = false }
  }

  /// The lane that was looked at has nothing left. Answers whether there is another one to look at.
  mutating func endLane() -> Bool {
    guard !ordered.isEmpty else { return false }
    ordered[place].isAtEnd = true
    return ordered.contains { !$0.isAtEnd }
  }

  mutating func takeUpStale() {
    whole.documents.takeUpStale()
    for index in ordered.indices { ordered[index].documents.takeUpStale() }
  }

  /// On these a relay has the word that did not know everything: they are sent, where the link carries all. Answers whether there
  /// are any.
  mutating func takeUp(unsure places: [DocumentPlace]) -> Bool {
    guard ordered.isEmpty, whole.documents.due.count < DocumentProgress.dueLimit else { return false }
    whole.documents.due.formUnion(places)
    return !places.isEmpty
  }

  var staleDocumentCount: Int {
    ordered.isEmpty
      ? whole.documents.staleDocuments.count : ordered.reduce(0) { $0 + $1.documents.staleDocuments.count }
  }

  var hasDeadLetters: Bool { whole.documents.hasDeadLetters || ordered.contains { $0.documents.hasDeadLetters } }
  var deadLetterCount: Int {
    ordered.reduce(whole.documents.deadLetters) { $0.union($1.documents.deadLetters) }.count
  }
}
