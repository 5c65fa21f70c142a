import Links
import Replication

extension Forwarder {
  /// What happened.
  package enum Event: Sendable {
    case start
    case connected
    /// What the ledger holds, and from where on the log is to be looked at.
    case ledgerRead(LedgerReading)
    case loaded(Page)
    case committed(AppendOutcome)
    /// The node knows what the ledger has.
    case readBack(ReadBackOutcome)
    /// What was asked for last did not come about.
    case failed(BackendProblem)
    /// What counts moved, or at least the log grew: of these partitions, when the log was there, on its own form.
    case news([PartitionID: VersionVector], at: String = "")
    /// Time has passed; also told when nothing is due.
    case timer
    /// A person does not want to wait.
    case sendNow
    /// What the link to the backend lets pass.
    case allowance(LinkAllowance)
  }

  /// What is to be done: the answer comes as an event before the next directive is carried out.
  package enum Directive: Equatable, Sendable {
    case connect
    case disconnect
    case readLedger
    case load(LoadRequest)
    case commit(LedgerBatch)
    /// Asks the ledger what it has, and tells the node.
    case readBack(ReadBackRequest)
  }

  package struct LedgerReading: Equatable, Sendable {
    package var view: LedgerView
    /// Runs at or below this arrival are in the ledger.
    package var runsAfter: Int64
    /// What counts now, of every partition.
    package var accepted: [PartitionID: VersionVector]
    /// Where the log was then, on its own form.
    package var position = ""
    package var held: LogAmount
    package var documents = DocumentProgress()
    /// The last batch that it has of this process.
    package var step: UInt64 = 0
    /// ``LedgerSums/batches``.
    package var batches: UInt64 = 0
    /// Changes that it had, by what was remembered, and lacks.
    package var lost: UInt64 = 0

    package init(view: LedgerView, runsAfter: Int64, accepted: [PartitionID: VersionVector], held: LogAmount) {
      (self.view, self.runsAfter, self.accepted, self.held) = (view, runsAfter, accepted, held)
    }
  }

  /// Reads the next rows for the ledger.
  package struct LoadRequest: Equatable, Sendable {
    package var view: LedgerView
    package var statementsAfter: Int64
    package var runsAfter: Int64
    /// Whose marks are to be looked at once the log is at its end.
    package var unmarked: [PartitionID: VersionVector]
    /// Where the log was when that was what counts, on its own form.
    package var unmarkedAt = ""
    package var bytes: Int
    package var changes: Int
    package var marks: Int
    package var documents = DocumentProgress()
    /// A row that the backend refuses is looked for, or it takes too long for more: documents go alone.
    package var isNarrowed = false
    /// A row that the ledger does not take is looked for: marks go apart from runs.
    package var isSearching = false
    /// Partitions that the rows are of; nil: all.
    package var filter: LaneFilter?
    /// Nothing but statements.
    package var isForAuthority = false
  }

  package struct Page: Equatable, Sendable {
    package var batch = LedgerBatch()
    package var statementsEnd: Int64 = 0
    package var runsEnd: Int64 = 0
    /// Nothing lies behind.
    package var isEnd = false
    /// Once the batch is in.
    package var documents = DocumentProgress()
    package var hasMoreDocuments = false
    /// Partitions whose marks are those once the batch is in.
    package var marked: [PartitionID: VersionVector] = [:]
    package var held = LogAmount()
    /// Nil where the batch has no word that may stand against another relay's.
    var knowledge: StatementKnowledge?
    /// Chains of which a run does not read in this store, with the first of these: what follows it is not in the batch.
    package var unread: [ChainKey: RefusedRow] = [:]
    /// When the oldest of its runs came here.
    package var oldestArrived: Int64?
    package init() {}
  }
}
