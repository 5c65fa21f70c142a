/// A write and its re-issues by the same device: to the merge one write, whichever of them has effect (rules C22, M17).
package struct Kin: Hashable, Sendable {
  package let original: Dot
  /// The original's dot is that of another change on the branch that counts here: then it does not stand for this write.
  package let isReplaced: Bool
  /// Those that are accepted.
  package let reissues: [Dot]
  /// The one whose operations count, and by whose dot the list elements go that any of them inserted.
  package let effective: Dot

  package init(original: Dot, isReplaced: Bool = false, reissues: [Dot], effective: Dot) {
    (self.original, self.isReplaced) = (original, isReplaced)
    (self.reissues, self.effective) = (reissues, effective)
  }

  /// Who has seen one of these has seen all.
  var members: [Dot] { isReplaced ? reissues : [original] + reissues }
}

/// The writes of a partition that were issued again, by the dots of their members. Nearly always empty.
package struct KinTable: Hashable, Sendable {
  private var kin: [Dot: Kin] = [:]

  package init() {}

  /// A dot that two have in common stands for the first of them, and for a re-issue before an original.
  package init(_ all: some Sequence<Kin>) {
    for one in all { for dot in one.reissues { kin[dot] = kin[dot] ?? one } }
    for one in all where !one.isReplaced { kin[one.original] = kin[one.original] ?? one }
  }

  package var isEmpty: Bool { kin.isEmpty }

  package subscript(dot: Dot) -> Kin? { kin[dot] }

  /// The name of a list element that `dot` inserted.
  func name(of dot: Dot) -> Dot { kin[dot]?.effective ?? dot }

  /// Members whose kin is not the same in the other table.
  func difference(from other: KinTable) -> Set<Dot> {
    var differing = Set(kin.lazy.filter { other.kin[$0.key] != $0.value }.map(\.key))
    differing.formUnion(other.kin.keys.lazy.filter { kin[$0] == nil })
    return differing
  }

  /// Members of those of which one is of this chain, above `sequence`.
  func dots(besideThoseOf replica: ReplicaID, above sequence: UInt64) -> Set<Dot> {
    Set(
      kin.values.lazy.map(\.members)
        .filter { $0.contains { $0.replica == replica && $0.sequence > sequence } }.joined())
  }

  /// Members of those whose original is of the one chain and that have a re-issue in the other.
  func members(of branch: ReissuedBranch) -> Set<Dot> {
    Set(kin.values.lazy.filter { $0.isOf(branch) }.flatMap(\.members))
  }
}

/// What one replica issued again of a branch of another that was lost.
package struct ReissuedBranch: Hashable, Sendable {
  package let original: ReplicaID
  package let reissuer: ReplicaID

  package init(original: ReplicaID, reissuer: ReplicaID) { (self.original, self.reissuer) = (original, reissuer) }
}

extension Kin {
  fileprivate func isOf(_ branch: ReissuedBranch) -> Bool {
    original.replica == branch.original && reissues.contains { $0.replica == branch.reissuer }
  }

  /// Was the original on one of these branches, which were seen up to these numbers?
  fileprivate func isAmong(_ seen: [ReissuedBranch: UInt64]) -> Bool {
    seen.contains { branch, last in original.sequence <= last && isOf(branch) }
  }
}

/// What decides here, beside what a context says, what it covers and how list elements are named: forks, and writes that were
/// issued again. Empty as long as there are none.
package struct Sight: Hashable, Sendable {
  /// Where a chain has forked and the context names another branch than the one accepted here, its entry reaches no
  /// higher than the fork (rule C23).
  package let ceilings: [ReplicaID: UInt64]
  package let kin: KinTable
  /// Lost branches that the context names by a hash which a re-issue names as its original's, and how far it saw them
  /// (rule C22).
  package let lostBranches: [ReissuedBranch: UInt64]

  /// Neither forks nor re-issues.
  package static let plain = Sight()

  package init(
    ceilings: [ReplicaID: UInt64] = [:], kin: KinTable = KinTable(), lostBranches: [ReissuedBranch: UInt64] = [:]
  ) {
    (self.ceilings, self.kin, self.lostBranches) = (ceilings, kin, lostBranches)
  }

  /// Does a context cover the change through another of its kin? `covers`: what it covers itself.
  func coversKin(of dot: Dot, _ covers: (Dot) -> Bool) -> Bool {
    guard let kin = kin[dot] else { return false }
    return kin.members.contains(where: covers) || kin.isAmong(lostBranches)
  }
}
