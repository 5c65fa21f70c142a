import Replication

/// What the next transaction will write.
struct PendingCommit {
  struct Applied {
    let partition: PartitionID
    let source: SessionID
    let runs: [DeliveredRun]
  }

  struct Load {
    let session: SessionID
    let partition: PartitionID
    let have: VersionVector
    let byteLimit: Int
  }

  var statements: [Statement] = []
  var partitions: [(PartitionID, PartitionName)] = []
  var applied: [Applied] = []
  var rebuilds: [(PartitionID, LogChange)] = []
  var writes: [WriteJob] = []
  var loads: [Load] = []
  var changeCount = 0

  /// Small, so that a turn commits more than once now and then.
  static let changeLimit = 40

  var isEmpty: Bool {
    statements.isEmpty && partitions.isEmpty && applied.isEmpty && rebuilds.isEmpty && writes.isEmpty
  }
  var isFull: Bool { changeCount + writes.count >= PendingCommit.changeLimit }
}

/// One change that somebody asks for: which documents, and how they change, is drawn when it is composed.
struct WriteJob {
  let number: Int
  let partition: PartitionName
  let documents: Int
  let seed: UInt64
}

/// What waits for a node's next turn.
enum NodeJob {
  case opened(SessionID, isDialer: Bool, peer: PublicKey, exporter: Digest)
  case message(SessionID, Message)
  case runs(SessionID, RunBatch, [IncomingRun])
  case violation(SessionID, String)
  case closed(SessionID)
  case drained(SessionID)
  case write(WriteJob)
  case subscribe(Text)
  case unsubscribe(Text)
}
