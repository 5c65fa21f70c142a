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
  private let clock: () -> MonotonicTime
  private var core = HomeBound()

  /// - Parameter clock: goes on while the machine sleeps, as the clock does by which a backend lets others have what was claimed.
  init(
    _ way: EditWay, _ limits: ForwarderLimits, _ source: any ForwardingSource, clock: @escaping () -> MonotonicTime
  ) {
    (self.way, self.source, self.clock) = (way, source, clock)
    claims = ClaimCheck(way.edits, limits)
  }

  private var lookedAt: MonotonicTime?

  /// Not before so long after the last look.
  func nextLook(paced milliseconds: UInt64) -> MonotonicTime {
    max(core.nextLook, lookedAt?.advanced(byMilliseconds: milliseconds) ?? core.nextLook)
  }

  var counts: HomeBound.Counts { core.counts }
  var problem: BackendProblem? { core.problem }

  /// - Parameters:
  ///   - known: what the ledger has, as far as is known.
  ///   - patterns: what partitions the link carries; nil: all. Of others the ledger may lack changes that this node made of edits.
  /// - Throws: where the backend is lost, or went back. That it refuses to tell of edits is no problem of forwarding.
  func bringHome(_ known: LedgerView, of patterns: [Text]?) throws(BackendProblem) {
    lookedAt = clock()
    var directives = core.look(clock())
    do throws(BackendProblem) {
      while !directives.isEmpty { directives += try perform(directives.removeFirst(), known, patterns) }
    } catch {
      guard error.kind == .schema || error.kind == .rejected else { throw error }
      core.refused(error, clock())
    }
  }

  private func perform(
    _ directive: HomeBound.Directive, _ known: LedgerView, _ patterns: [Text]?
  ) throws(BackendProblem) -> [HomeBound.Directive] {
    switch directive {
    case .claim(let most): return core.claimed(try way.edits.claimEdits(most: most, of: patterns))
    case .confirm(let edits):
      return core.confirmed(try claims.standing(edits, known, in: source.partitions(of: edits)))
    case .write(let edits, let latest):
      var outcomes: [HomeBound.Settlement] = []
      for edit in edits where clock() < latest {
        outcomes.append(HomeBound.Settlement(edit: edit.id, outcome: way.writer.write(edit)))
      }
      return core.wrote(outcomes, clock())
    case .settle(let outcomes):
      try way.edits.settle(outcomes.map { ($0.edit, $0.outcome) })
      return []
    }
  }
}
