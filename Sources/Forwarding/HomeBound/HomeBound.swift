import Replication

/// Decides when edits are brought home from a backend: a value without IO, beside a ``Forwarder``.
///
/// Edits are asked for only while the ledger has all that this node holds of the partitions that they may be of. So whatever the ledger has no change of is not in this
/// store either: an edit that this relay claimed before a crash is written then and not twice. A ledger that was put back under a
/// standing connection would tell of edits whose changes it lost; so before anything is written it is asked whether it still
/// has what it had, and, in the same breath, whether the edits are still to be done: another relay may have filled it meanwhile.
package struct HomeBound: Sendable {
  package enum Directive: Equatable, Sendable {
    case claim(most: Int)
    /// Which of these are still to be done, by a ledger that still has what it is known to have of their partitions.
    case confirm([OfficeEdit])
    /// No later than that: whoever claims may be told of them by then.
    case write([OfficeEdit], by: MonotonicTime)
    case settle([Settlement])
  }

  package struct Settlement: Equatable, Sendable {
    package let edit: UUIDValue
    package let outcome: EditOutcome
    package init(edit: UUIDValue, outcome: EditOutcome) { (self.edit, self.outcome) = (edit, outcome) }
  }

  package struct Counts: Equatable, Sendable {
    package var written = 0
    package var refused = 0
    package init() {}
  }

  /// Edits in one claim; also of those that are written and of which the ledger does not know yet.
  package static let claimLimit = 64
  /// Remembered as written, of the latest. Of those before them the ledger alone knows.
  package static let writtenLimit = 16_384
  /// Between two looks where there was nothing to do.
  package static let lookMilliseconds: UInt64 = 2_000
  /// Behind a claim: a fifth of the time after which others may have what was claimed.
  package static let writeMilliseconds: UInt64 = 120_000
  /// After the backend refused to tell.
  package static let refusedMilliseconds: UInt64 = 60_000

  package private(set) var counts = Counts()
  /// Why no edits are brought home; nil where they are.
  package private(set) var problem: BackendProblem?
  /// When it is to be looked again, if the ledger has everything then.
  package private(set) var nextLook = MonotonicTime(milliseconds: 0)
  /// Written by this process: the ledger is on its way to know, or knew.
  private var written: Set<UUIDValue> = []
  /// As many, written before those.
  private var writtenBefore: Set<UUIDValue> = []
  /// Claimed, and to be written once the ledger has confirmed them.
  private var due: [OfficeEdit] = []
  /// When these are to be written at the latest.
  private var dueBy = MonotonicTime(milliseconds: 0)

  package init() {}

  /// The ledger has all that this node holds of the partitions that the link carries.
  package mutating func look(_ now: MonotonicTime) -> [Directive] {
    guard now >= nextLook else { return [] }
    nextLook = now.advanced(byMilliseconds: HomeBound.lookMilliseconds)
    dueBy = now.advanced(byMilliseconds: HomeBound.writeMilliseconds)
    return [.claim(most: HomeBound.claimLimit)]
  }

  package mutating func claimed(_ edits: [OfficeEdit]) -> [Directive] {
    problem = nil
    due = edits.filter { !written.contains($0.id) && !writtenBefore.contains($0.id) }
    return due.isEmpty ? [] : [.confirm(due)]
  }

  /// The ledger lost nothing, and these are still to be done. Where it did nothing is written: it is filled first, and then tells
  /// anew.
  package mutating func confirmed(_ standing: Set<UUIDValue>) -> [Directive] {
    let edits = due.filter { standing.contains($0.id) }
    due = []
    return edits.isEmpty ? [] : [.write(edits, by: dueBy)]
  }

  package mutating func wrote(_ outcomes: [Settlement], _ now: MonotonicTime) -> [Directive] {
    var settled: [Settlement] = []
    for item in outcomes {
      switch item.outcome {
      case .written:
        remember(item.edit)
        counts.written += 1
      case .unchanged, .left: settled.append(item)
      case .refused:
        counts.refused += 1
        settled.append(item)
      }
    }
    // There may be more; what was left alone waits as long as nothing to do does.
    if outcomes.contains(where: { $0.outcome == .written }) { nextLook = now }
    return settled.isEmpty ? [] : [.settle(settled)]
  }

  private mutating func remember(_ edit: UUIDValue) {
    if written.count >= HomeBound.writtenLimit / 2 { (writtenBefore, written) = (written, []) }
    written.insert(edit)
  }

  /// The backend does not let this relay bring edits home, whatever becomes of forwarding.
  package mutating func refused(_ problem: BackendProblem, _ now: MonotonicTime) {
    self.problem = problem
    nextLook = now.advanced(byMilliseconds: HomeBound.refusedMilliseconds)
  }
}
