import Replication

/// M17, C22: a write and its accepted re-issues by the same device, one write to the merge.
package struct NaiveGroup: Sendable {
  /// The first original, accepted or not. It is in the group, unless its dot is that of another change on my branch.
  let first: Dot
  let isFirstIn: Bool
  /// The accepted re-issues.
  let again: [Dot]
  /// The first accepted: its operations count, and list elements go by its dot.
  let effective: Dot
  /// A context's entry of the original's chain that is one of these has seen the original, though it is off my branch.
  let signs: Set<NaivePosition>

  package init(
    first: Dot, isFirstIn: Bool = true, again: [Dot], effective: Dot, signs: Set<NaivePosition> = []
  ) {
    (self.first, self.isFirstIn, self.again) = (first, isFirstIn, again)
    (self.effective, self.signs) = (effective, signs)
  }

  /// A context that has one of these has all.
  var members: [Dot] { (isFirstIn ? [first] : []) + again }
}

/// Groups by the dots of their members.
struct NaiveGroups {
  private var groups: [Dot: NaiveGroup] = [:]

  init(_ all: [NaiveGroup]) {
    // A re-issue is of one group alone. Lost branches share dots: there the first original in order stands for its own.
    for group in all.reversed() where group.isFirstIn { groups[group.first] = group }
    for group in all.reversed() { for dot in group.again { groups[dot] = group } }
  }

  /// M5: is `dot`, or another of its group, in the context of `author`?
  func isKnown(_ dot: Dot, to author: NaiveChange, _ sight: NaiveSight) -> Bool {
    func has(_ member: Dot) -> Bool { sight.hasSeen(member, by: author.context, of: author.dot) }
    if has(dot) { return true }
    guard let group = groups[dot], dot != author.dot else { return false }
    return group.members.contains(where: has)
      || author.context[group.first.replica].map { group.signs.contains($0) } ?? false
  }

  /// M17: a list element that one of a group inserted is the same element for all.
  func named(_ path: [PathSegment]) -> [PathSegment] {
    path.map { segment in
      guard case .element(let element) = segment, let group = groups[element.dot] else { return segment }
      return .element(ListElement(position: element.position, dot: group.effective))
    }
  }
}

extension NaiveEffects {
  /// In the order of their originals.
  static func groups(_ counting: [Counting], in lines: [NaiveLine], _ rights: NaiveRights) -> [NaiveGroup] {
    let again = counting.compactMap { item in original(item, rights).map { (name: item.name, first: $0) } }
    let firsts = Set(again.map(\.first)).sorted { areInOrder($0, $1) }
    return firsts.map { first in
      let mine = again.filter { $0.first == first }.map(\.name).sorted { $0.hash < $1.hash }
      let isAccepted =
        counting.contains { $0.name == first } && !again.contains { $0.name == first }
      // The later writes of the original's branch that were issued again in the same chain as this one.
      let signs = again.filter { other in
        other.first.dot.replica == first.dot.replica && other.first.dot.sequence >= first.dot.sequence
          && mine.contains { $0.dot.replica == other.name.dot.replica }
      }.map { NaivePosition(sequence: $0.first.dot.sequence, tip: $0.first.hash.tip) }
      return NaiveGroup(
        first: first.dot, isFirstIn: !isElsewhere(first, in: lines), again: mine.map(\.dot),
        effective: isAccepted ? first.dot : mine[0].dot, signs: Set(signs))
    }
  }

  private static func areInOrder(_ a: NaiveAcceptance.Named, _ b: NaiveAcceptance.Named) -> Bool {
    (a.dot.replica.high, a.dot.replica.low, a.dot.sequence, a.hash)
      < (b.dot.replica.high, b.dot.replica.low, b.dot.sequence, b.hash)
  }

  /// Is the dot of this change that of another one on my branch?
  private static func isElsewhere(_ change: NaiveAcceptance.Named, in lines: [NaiveLine]) -> Bool {
    let line = lines.first { $0.replica == change.dot.replica }
    return line?.branch.contains { $0.sequence == change.dot.sequence && $0.hash != change.hash } ?? false
  }
}
