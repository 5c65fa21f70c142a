import Forwarding
import Replication

/// What becomes of the office's edits.
struct EditCheck: Check {
  let known: Knowledge

  /// A relay writes, or refuses, no edit of which its store had a change when it asked for edits.
  func checkAsked(_ edit: OfficeEdit, since asked: UInt64, at node: SimulatedNode) {
    guard let shore = world.shore, shore.edits.had(edit.id, at: node, before: asked) else { return }
    world.violate("I9", "relay \(node.slot) is to do edit \(edit.id.short) again, of which it had a change")
  }

  /// Each has an answer, and takes effect once.
  func difference(_ shore: Shore) -> String? {
    let office = shore.ledger.office
    for row in office.rows where !row.isSettled && !shore.carriers.isEmpty {
      // Who had read what does not count any more, or not yet, is told so.
      guard row.waitsFor == nil else { continue }
      // Who forwards no more has it for ten minutes.
      if let relay = row.relay, shore.retired.contains(where: { $0.key.device == relay }) { continue }
      return "an edit of the office waits without a reason"
    }
    let causes = effects()
    for edit in shore.asked {
      let (made, effective) = causes[edit.id] ?? (0, 0)
      if effective > 1, !mayTakeEffectTwice(shore) { return "an edit of the office takes effect \(effective) times" }
      let row = office.rows.first { $0.edit.id == edit.id }
      // Where the ledger went back it was refused in another past, and the office is told of the change.
      if row?.refusal != nil, made > 0, !shore.hasGoneBack, !mayTakeEffectTwice(shore) {
        return "an edit was refused, and there is a change of it: \(row?.refusal ?? "")"
      }
    }
    return nil
  }

  /// Who lost what he had done, or was told to do, cannot know that somebody else has it.
  private func mayTakeEffectTwice(_ shore: Shore) -> Bool {
    shore.hasGoneBack && shore.carrying.count > 1
      || shore.carrying.contains { world.nodes[$0].lineage > 0 || shore.cloned.contains(world.nodes[$0].key.device) }
  }

  /// Of each edit, how many changes name it as their cause, and how many of those have effect at one and the same node, where
  /// they are most. Who may not have a partition any more, or wants it no more, has a history of his own of it: what a fork put
  /// aside elsewhere may count there.
  private func effects() -> [UUIDValue: (made: Int, effective: Int)] {
    var made: [UUIDValue: Int] = [:]
    var effective: [UUIDValue: [Int: Int]] = [:]
    let nodes = world.nodes.filter { $0.isHonest && $0.process != nil }
    for run in known.library.all {
      for (index, edit) in run.edits.enumerated() {
        guard let edit else { continue }
        made[edit, default: 0] += 1
        for node in nodes where counts(run, index, at: node) {
          effective[edit, default: [:]][node.slot, default: 0] += 1
        }
      }
    }
    return made.reduce(into: [:]) { $0[$1.key] = ($1.value, effective[$1.key]?.values.max() ?? 0) }
  }

  private func counts(_ run: KnownRun, _ index: Int, at node: SimulatedNode) -> Bool {
    guard let part = node.directory.book.partitions[run.partition] else { return false }
    let dot = Dot(replica: run.replica, sequence: run.first + UInt64(index))
    return verdict(node, run.partition, part.name).counts(run.observed.changes[index].hash, at: dot)
  }
}
