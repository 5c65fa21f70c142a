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
  private var core = HomeBound()

  init(_ way: EditWay) { self.way = way }

  private var lookedAt: MonotonicTime?

  /// Not before so long after the last look.
  func nextLook(paced milliseconds: UInt64) -> MonotonicTime {
    max(core.nextLook, lookedAt?.advanced(byMilliseconds: milliseconds) ?? core.nextLook)
  }

  var counts: HomeBound.Counts { core.counts }
  var problem: BackendProblem? { core.problem }

  /// - Throws: where the backend is lost. That it refuses to tell of edits is no problem of forwarding.
  func bringHome(_ now: MonotonicTime) throws(BackendProblem) {
    lookedAt = now
    var directives = core.look(now)
    do throws(BackendProblem) {
      while !directives.isEmpty { directives += try perform(directives.removeFirst(), now) }
    } catch {
      guard error.kind == .schema || error.kind == .rejected else { throw error }
      core.refused(error, now)
    }
  }

  private func perform(
    _ directive: HomeBound.Directive, _ now: MonotonicTime
  ) throws(BackendProblem) -> [HomeBound.Directive] {
    switch directive {
    case .claim(let most): return core.claimed(try way.edits.claimEdits(most: most), now)
    case .write(let edits):
      return core.wrote(edits.map { HomeBound.Settlement(edit: $0.id, outcome: way.writer.write($0)) }, now)
    case .settle(let outcomes):
      try way.edits.settle(outcomes.map { ($0.edit, $0.outcome) })
      return []
    }
  }
}
