import Identity
import Replication
import Storage
import Transport
import Wire

/// What became of the store before this start, as `doctor` tells it while the node runs.
struct StoreHistory: Sendable, Equatable {
  /// There was none: the fleet's statements were fetched anew, and its documents follow (S8).
  var wasFetched = false
  /// Found at the start (rule C20).
  var causes: Set<RenewalCause> = []
}

extension NodeFiles {
  /// The store of the directory, which is locked for it. Where it has gone, the statements are asked of the fleet first, and
  /// nothing is made before they are here: an empty store would be no better at the next start.
  func openStore(
    _ configuration: NodeConfiguration, _ log: NodeLog
  ) throws -> (store: Store, history: StoreHistory) {
    let lock = try DirectoryLock(directory: directory.path)
    let contents = DirectoryContents(directory.path)
    if let refusal = contents.nodeRefusal ?? contents.storeRefusal { throw refusal }
    // The set-up came to its end, but for this.
    try PrivateFile.remove(directory.file(SetupMarker.fileName))
    if contents.store == .present, let store = try presentStore(lock) { return (store, StoreHistory()) }
    let statements = try fetchStatements(configuration, log)
    return (try newStore(statements, lock), StoreHistory(wasFetched: true))
  }

  /// Nil where it holds nothing at all: one that was made when this one was lost, and not filled.
  private func presentStore(_ lock: DirectoryLock) throws -> Store? {
    let store = try existingStore(lock)
    return try store.statements().isEmpty && store.counters.changes == 0 ? nil : store
  }

  /// The store that is there. That its log was lost can be seen at this start alone: the next one finds a log again. So it is
  /// written down, before anything is written to the store, until a new replica is drawn.
  func existingStore(_ lock: DirectoryLock) throws -> Store {
    var options = StoreOptions.ofProcess
    options.createsIfMissing = false
    let sidecar = try ReplicaSidecar.load(from: directory)
    return try Store.open(
      directory: directory.path, fleet: fleet, device: device, lock: lock, options: options
    ) { found throws(StoreError) in
      guard case .present(var sidecar) = sidecar, sidecar.hasLostLog(found.wasEmpty, starts: found.starts) else {
        return false
      }
      sidecar.log = .lost
      do throws(FileError) { try sidecar.save(to: directory) } catch { throw StoreError(error) }
      return true
    }
  }

  private func fetchStatements(_ configuration: NodeConfiguration, _ log: NodeLog) throws -> [Statement] {
    log.notice("the store has gone: asking the fleet for everything anew", ["directory": directory.path])
    log.flush()
    do {
      return try FleetInquiry(StatementRequest(fleet: fleet, key: deviceKey))
        .run(
          configuration.peers, usesDiscovery: configuration.usesDiscovery,
          timeoutMilliseconds: configuration.recoveryMilliseconds, isGivenUp: { _ in configuration.isRecoveryGivenUp() }
        )
    } catch let error as NodeError where error.code != .stopping {
      throw NodeError(error.code, "seamesh.db has gone from \(directory.path), and \(error.message)")
    }
  }

  /// What this device wanted went with its store, so it wants all that it may hold: only then is nothing missing that was
  /// here before.
  private func newStore(_ statements: [Statement], _ lock: DirectoryLock) throws -> Store {
    let store = try Store.open(
      directory: directory.path, fleet: fleet, device: device, lock: lock, options: .ofProcess)
    try store.write(.full) { transaction in
      for statement in statements {
        try transaction.addStatement(
          id: statement.id, encoded: statement.encoded, arrived: WallClock.milliseconds)
      }
      try transaction.subscribe(NodeFiles.everything)
    }
    return store
  }

  static let everything: Text = "*"
}

/// Asks for the statements as any session does: whoever knows this device as a member answers its hello, and then sends
/// all that the tips told do not show to be held, of which there are none.
private struct StatementRequest: InquiryTopic {
  let fleet: FleetID
  let key: SigningKey

  func greeting(_ connection: OpenedConnection) -> Message {
    let proof = connection.fleetProof(fleet)
    var hello = Hello(
      fleetProof: proof.proof(ofDialer: true), instance: UUIDValue(SecureRandom.bytes(16)) ?? .zero,
      wallMilliseconds: WallClock.milliseconds, listenPort: 0, authority: .zero,
      interest: proof.mark(Interest().digest(SHA256.hash), .interest, ofDialer: true))
    hello.signature = key.sign(
      hello.signedBytes(device: key.publicKey, exporter: connection.exporter, isDialer: true))
    return .hello(hello)
  }

  func failure(_ inquiry: InquiryProgress) -> NodeError {
    let last = inquiry.lastFailure.map { " (\($0))" } ?? ""
    return NodeError(
      .failed, "no node of this fleet could be reached\(last); give its address with --peer HOST:PORT")
  }

  func step(after message: Message, on connection: OpenedConnection) -> InquiryStep {
    switch message {
    case .statementSet: .say(.statementSet(StatementSet(scope: "", .tips(listed: .max, []))))
    case .goodbye(.otherFleet): .askElsewhere("the node at this address belongs to another fleet")
    case .hello(let hello) where !connection.listenerKnows(fleet, by: hello):
      .askElsewhere("the node at this address belongs to another fleet")
    case .goodbye(.notAMember): .askElsewhere("the node that was asked does not know this device yet")
    case .statementsComplete: .complete
    default: .wait
    }
  }
}

extension StoreError {
  /// Of a file beside the store, without which the store is not to be written.
  fileprivate init(_ error: FileError) {
    switch error {
    case .failed(let operation, let path, let code): self = .system(operation: operation, path: path, code: code)
    default: self = .readOnly("\(error)")
    }
  }
}
