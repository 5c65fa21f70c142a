import Replication

/// Where edits come from, and where they go.
package struct EditWay: Sendable {
  let edits: any EditStore
  let writer: any EditWriter
  package init(from edits: any EditStore, to writer: any EditWriter) { (self.edits, self.writer) = (edits, writer) }
}

/// Drives a ``HomeBound`` with a backend and a node. Belongs to the forwarder's thread.
final class EditCarrier {
  private let way: EditWay
  private let claims: ClaimCheck
  private let source: any ForwardingSource
  private var core = HomeBound()

  init(_ way: EditWay, _ limits: ForwarderLimits, _ source: any ForwardingSource) {
    (self.way, self.source) = (way, source)
    claims = ClaimCheck(way.edits, limits)
  }

  private var lookedAt: MonotonicTime?

  /// Not before so long after the last look.
  func nextLook(paced milliseconds: UInt64) -> MonotonicTime {
    max(core.nextLook, lookedAt?.advanced(byMilliseconds: milliseconds) ?? core.nextLook)
  }

  var counts: HomeBound.Counts { core.counts }
  var problem: BackendProblem? { core.problem }

  /// - Parameter known: what the ledger has, as far as is known.
  /// - Throws: where the backend is lost, or went back. That it refuses to tell of edits is no problem of forwarding.
  func bringHome(_ known: LedgerView, _ now: MonotonicTime) throws(BackendProblem) {
    lookedAt = now
    var directives = core.look(now)
    do throws(BackendProblem) {
      while !directives.isEmpty { directives += try perform(directives.removeFirst(), known, now) }
    } catch {
      guard error.kind == .schema || error.kind == .rejected else { throw error }
      core.refused(error, now)
    }
  }

  private func perform(
    _ directive: HomeBound.Directive, _ known: LedgerView, _ now: MonotonicTime
  ) throws(BackendProblem) -> [HomeBound.Directive] {
    switch directive {
    case .claim(let most): return core.claimed(try way.edits.claimEdits(most: most), now)
    case .confirm(let edits):
      return core.confirmed(try claims.standing(edits, known, in: source.partitions(of: edits)))
    case .write(let edits):
      return core.wrote(edits.map { HomeBound.Settlement(edit: $0.id, outcome: way.writer.write($0)) }, now)
    case .settle(let outcomes):
      try way.edits.settle(outcomes.map { ($0.edit, $0.outcome) })
      return []
    }
  }
}
