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

  /// - Parameter reached: empty: nothing is known.
  package mutating func note(_ reached: String, of backend: any Backend, at now: MonotonicTime) {
    guard !reached.isEmpty, last?.position != reached || last?.ledger != backend.ledgerID else { return }
    last = LedgerMemory(ledger: backend.ledgerID, position: reached)
    if let writtenAt, now.millisecondsSince(writtenAt) < limits.memoryMilliseconds { return }
    writtenAt = now
    write()
  }

  /// Where a kill comes before it, less is remembered than was there.
  package mutating func write() {
    guard let last, last != written else { return }
    source.remember(last.text)
    written = last
  }
}
