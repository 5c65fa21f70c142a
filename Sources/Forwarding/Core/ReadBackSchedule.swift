import Replication

/// What the ledger is to be asked, so that it can be said of changes that they are in the backend: having sent them is no proof.
package enum ReadBackRequest: Equatable, Sendable {
  /// About every chain that is here: a backend may have gone back.
  case everything
  /// About those of which something was sent.
  case chains(Set<ChainKey>)
}

/// What a reading showed.
package struct ReadBackOutcome: Equatable, Sendable {
  /// The ledger has less of some chain than it had at the reading before.
  package var wentBack = false
  /// How far each chain that was asked about is marked there as counting; nil where nothing is said of it.
  package var marks: [ChainKey: ChainPosition?] = [:]
  /// What counted here before, of every partition; empty where not everything was asked about.
  package var accepted: [PartitionID: VersionVector] = [:]
  /// What the backend says of its documents; nil where not everything was asked about.
  package var documents: DocumentNews?
  /// Those that the ledger has, where they are not those that are here and those that were ``elsewhere`` already, and everything
  /// was asked about.
  package var statements: Set<Digest>?
  /// Statements that the ledger has and this relay does not hold; nil where not everything was asked about.
  package var elsewhere: [StatementPlace]?
  package init(wentBack: Bool = false) { self.wentBack = wentBack }
}

/// When the ledger is to be read back.
struct ReadBackSchedule: Equatable, Sendable {
  /// Chains of which something was sent since they were asked about.
  private var sent: Set<ChainKey> = []
  private var isToReadEverything = true
  private var readAt: MonotonicTime?
  private var everythingReadAt: MonotonicTime?

  mutating func note(_ batch: LedgerBatch) { sent.formUnion(batch.runs.lazy.map(\.chain)) }

  mutating func requireEverything() { isToReadEverything = true }

  /// Nil where it never was asked.
  func due(_ limits: ForwarderLimits) -> MonotonicTime? {
    guard !isToReadEverything else { return MonotonicTime(milliseconds: 0) }
    let whole = everythingReadAt?.advanced(byMilliseconds: limits.readEverythingMilliseconds)
    guard !sent.isEmpty, let part = readAt?.advanced(byMilliseconds: limits.readBackMilliseconds) else { return whole }
    return whole.map { min($0, part) } ?? part
  }

  /// What is to be asked now; nil: nothing yet.
  mutating func take(_ limits: ForwarderLimits, _ now: MonotonicTime) -> ReadBackRequest? {
    guard let due = due(limits), due <= now else { return nil }
    let isWhole =
      isToReadEverything
      || everythingReadAt.map { now.millisecondsSince($0) >= limits.readEverythingMilliseconds } ?? true
    readAt = now
    defer { sent = [] }
    guard isWhole else { return .chains(sent) }
    (isToReadEverything, everythingReadAt) = (false, now)
    return .everything
  }
}
