import Forwarding
import Replication
import Wire

/// Of the office's edits, which changes of them came to which relay's store, and when.
struct EditBook {
  private struct Stored {
    let run: KnownRun
    let at: UInt64
  }

  private var stored: [Int: [UUIDValue: [Stored]]] = [:]

  mutating func note(_ run: KnownRun, at slot: Int, _ now: UInt64) {
    for edit in Set(run.edits.compactMap { $0 }) {
      stored[slot, default: [:]][edit, default: []].append(Stored(run: run, at: now))
    }
  }

  /// A change of it had come to the store before that time, and is there now.
  func had(_ edit: UUIDValue, at node: SimulatedNode, before time: UInt64) -> Bool {
    (stored[node.slot]?[edit] ?? []).contains { stored in
      stored.at < time && node.directory.book.partitions[stored.run.partition]?.held.contains(stored.run.number) == true
    }
  }
}

extension KnownRun {
  /// Of each change, the edit of the office that it came from.
  var edits: [UUIDValue?] {
    decoded.changes.map { $0.header.extensions.lazy.compactMap { UUIDValue(cause: $0) }.first }
  }
}
