import Storage

/// How far a relay's documents are at the backend, as that keeps it: a place in a store's log, and which process wrote it down.
///
/// A copy of a data directory forwards as the same device, with a log of its own: the same place stands for other runs there, and so
/// it does after the directory was put back. So a place is believed of its own process alone, and of an earlier one of the same
/// directory only as far as the directory itself remembers it.
package struct KeptPosition: Equatable, Sendable {
  /// On the log's own form.
  package let position: String
  package let writer: String

  package init(_ position: String, by writer: String) { (self.position, self.writer) = (position, writer) }

  package var text: String { "\(position)@\(writer)" }

  /// Nil where it is no ``text``.
  package init?(text: String) {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    (position, writer) = (String(parts[0]), String(parts[1]))
  }

  /// From where on this process sends documents; empty: all of them.
  ///
  /// - Parameter memory: what this directory remembers of this ledger.
  package func resumed(by process: String, _ memory: LedgerMemory?) -> String {
    if writer == process { return position }
    guard let memory, memory.writer == writer, let kept = LogPosition(text: position),
      let own = LogPosition(text: memory.position)
    else { return "" }
    // What is behind the one may have been sent by a copy of this directory, and behind the other was lost with the backend.
    if kept.belongs(to: own) { return position }
    return own.belongs(to: kept) ? memory.position : ""
  }
}
