import Replication
import Transport

/// What the engine thread is handed: by the IO thread, by discovery, and by whoever uses the node.
enum EngineJob: Sendable {
  case opened(OpenedConnection)
  case message(ConnectionID, Message, byteCount: Int)
  case runs(ConnectionID, RunBatch, [IncomingRun], byteCount: Int)
  /// What came breaks the protocol: one sentence.
  case violation(ConnectionID, String)
  case closed(ConnectionID, CloseReason)
  case drained(ConnectionID)
  case dialFailed(tag: UInt64, DialFailure)
  case found(instance: Text, [SocketAddress], tagMatches: Bool)
  case lost(instance: Text)
  case networkChanged
  case write(LocalWriteJob)
  /// Anything else, on the engine thread, after everything before it.
  case call(@Sendable (NodeEngine) -> Void)
  case stop
}

/// Requests that become one change, and where the answer goes.
struct LocalWriteJob: Sendable {
  let partition: PartitionName
  let requests: [DocumentRequest]
  let reply: Reply<Result<WriteReceipt, NodeError>>
}
