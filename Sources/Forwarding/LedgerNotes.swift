import Replication

/// Keeps what a relay remembers of the ledger, in memory and, now and then, on its disk.
package struct LedgerNotes {
  private let source: any ForwardingSource
  private let limits: ForwarderLimits
  package private(set) var last: LedgerMemory?
  private var written: LedgerMemory?
  private var writtenAt: MonotonicTime?

  package init(_ source: any ForwardingSource, _ limits: ForwarderLimits) {
    (self.source, self.limits) = (source, limits)
    last = source.remembered().flatMap { LedgerMemory(text: $0) }
    written = last
  }

  /// What a forwarder knows to be there.
  package mutating func note(_ forwarder: Forwarder, of backend: any Backend, at now: MonotonicTime) {
    guard let position = position(of: forwarder, in: backend.ledgerID) else { return }
    let memory = LedgerMemory(ledger: backend.ledgerID, position: position, writer: forwarder.keptBy)
    guard memory != last else { return }
    last = memory
    // Who does not know that writer sends all documents again.
    if let writtenAt, written?.writer == memory.writer, now.millisecondsSince(writtenAt) < limits.memoryMilliseconds {
      return
    }
    writtenAt = now
    write()
  }

  /// Nil where that is not known. While something is put aside the ledger never has all that came, and what is remembered stays
  /// true: a later start is to know who keeps the place of documents there, and not to send all of them again.
  private func position(of forwarder: Forwarder, in ledger: String) -> String? {
    guard forwarder.reached.isEmpty else { return forwarder.reached }
    guard let last, last.ledger == ledger, forwarder.keptBy != DocumentProgress.nobody else { return nil }
    return last.position
  }

  /// Where a kill comes before it, less is remembered than was there.
  package mutating func write() {
    guard let last, last != written else { return }
    source.remember(last.text)
    written = last
  }
}
