/// The only causes for a new replica id (rule C20). Neither an unclean stop nor a boot is one by itself.
package enum RenewalCause: String, Hashable, Sendable, CaseIterable {
  /// Database and sidecar belong to different stores.
  case storeID = "store id differs from the sidecar's"
  /// The sidecar saw more committed than the database holds: an older copy came back.
  case reached = "the sidecar reached more than the database holds"
  /// After a stop that was not clean the log is gone or empty, or ends before that start: commits may have gone with it.
  case log = "the write-ahead log has lost what it held"
  case machineID = "the machine changed"
  case inode = "the database file changed"
  case restored = "restored from a backup"
  case inputOutputError = "input/output error"
  case corruption = "corruption found"
  case peer = "a peer shows signed runs of an own chain that are not here"
}

/// What a node finds when it looks for reasons to distrust that it alone continues its chains.
package struct RenewalEvidence: Sendable {
  /// What stands in the database.
  package struct Store: Sendable {
    package var id: UUIDValue
    /// Own changes committed.
    package var ownCommits: UInt64
    /// Starts counted in the database.
    package var starts: UInt64 = 0
    /// The write-ahead log beside the database was missing or empty when the store was opened.
    package var wasLogEmpty = false
    package var isRestored = false
    package var hadInputOutputError = false
    package var isCorrupt = false

    package init(id: UUIDValue, ownCommits: UInt64) { (self.id, self.ownCommits) = (id, ownCommits) }
  }

  /// What stands in the file beside it.
  package struct Sidecar: Sendable {
    package var storeID: UUIDValue
    /// A number of own changes that was committed already when it was written here.
    package var reached: UInt64
    /// Starts counted in the database when the log was opened.
    package var starts: UInt64 = 0
    package var log = Log.closed
    package var machine: Text
    package var inode: UInt64

    package enum Log: String, Hashable, Sendable {
      /// The database alone holds everything.
      case closed
      /// Something stands in the write-ahead log: at least the start that opened it.
      case open
      /// Found to be lost at a start; no new replica was drawn since.
      case lost
    }

    package init(storeID: UUIDValue, reached: UInt64, machine: Text, inode: UInt64) {
      (self.storeID, self.reached, self.machine, self.inode) = (storeID, reached, machine, inode)
    }
  }

  /// All causes found, each once, in order of their declaration; empty: the replica goes on.
  package static func causes(store: Store, sidecar: Sidecar, machine: Text, inode: UInt64) -> [RenewalCause] {
    let found: [(RenewalCause, Bool)] = [
      (.storeID, store.id != sidecar.storeID),
      (.reached, sidecar.reached > store.ownCommits),
      (.log, hasLostLog(store.wasLogEmpty, starts: store.starts, sidecar)),
      (.machineID, machine != sidecar.machine),
      (.inode, inode != sidecar.inode),
      (.restored, store.isRestored),
      (.inputOutputError, store.hadInputOutputError),
      (.corruption, store.isCorrupt),
    ]
    return found.filter(\.1).map(\.0)
  }

  /// What the sidecar says of the log, against what is found.
  package static func hasLostLog(_ wasEmpty: Bool, starts: UInt64, _ sidecar: Sidecar) -> Bool {
    switch sidecar.log {
    case .closed: false
    case .open: wasEmpty || starts < sidecar.starts
    case .lost: true
    }
  }

  /// Does a peer's entry for an own chain that ends at `end` say that it goes on, or went another way? Nobody has signed
  /// that. `tip`: the own chain's hash at the peer's number, if it has one.
  package static func isClaim(_ entry: ChainPosition, beyond end: UInt64, tip: TipHash?) -> Bool {
    entry.sequence > 0 && (entry.sequence > end || tip != entry.tip)
  }
}
