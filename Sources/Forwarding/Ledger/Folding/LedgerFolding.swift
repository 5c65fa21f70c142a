import Engine
import Replication
import Storage
import Wire

/// Makes the documents of a ledger anew: the engine that nodes run judges its runs on a store in a temporary directory, and the
/// store folds them. So memory is a node's, and the disk takes about as much as a node that holds all of the ledger.
final class LedgerFolding {
  private let tables: any LedgerTables
  private let cryptography: Cryptography
  private let fleet: FleetID
  private let decoder: FrameDecoder
  private let scratch: ScratchDirectory
  let store: Store
  private let engine: NodeEngine
  private var waiting: [DeliveredRun] = []
  private var waitingBytes = 0

  /// What a partition came to.
  struct Outcome {
    /// How far each chain goes in the ledger, on whatever branch.
    var highest: [ReplicaID: UInt64] = [:]
    /// A run is not in the store although somebody had the right to write it: documents without it say nothing.
    var isWhole = true
    /// Written by runs that relays may not have folded yet.
    var doubtful = DoubtfulDocuments()
    /// The runs that did.
    var runsInDoubt = 0
    /// What counts.
    var accepted = VersionVector()
  }

  /// Of runs and contexts that wait for one commit, passed by one run at the most.
  private static let byteLimit = 1024 * 1024
  private static let contextEntryBytes = 48

  init(_ tables: any LedgerTables, _ fleet: FleetID, _ cryptography: Cryptography) throws {
    (self.tables, self.fleet, self.cryptography) = (tables, fleet, cryptography)
    decoder = FrameDecoder(fleet: fleet, cryptography)
    scratch = try ScratchDirectory()
    // A device that nobody let in: it reads, and never writes.
    let device = PublicKey(Digest.zero)
    store = try Store.open(
      directory: scratch.path, fleet: fleet, device: DeviceID.derived(from: device, cryptography.hash),
      lock: scratch.lock)
    let statements = try LedgerStatements.holding(tables, fleet, cryptography)
    let authority = Authority(ofFleet: fleet, statements, cryptography.hash)
    try store.write(.full) { transaction in
      for statement in statements where authority?.holds(statement.id) == true {
        try transaction.addStatement(id: statement.id, encoded: statement.encoded, arrived: 0)
      }
      try transaction.subscribe("*")
    }
    let ports = EnginePorts(
      store: store, mark: NoMark(), clock: StandingClock(), links: NoLinks(), journal: NoJournal(), feed: NoListener(),
      random: SystemRandomNumberGenerator())
    engine = try NodeEngine(
      EngineIdentity(fleet: fleet, device: device, cryptography: cryptography), EngineOptions(instance: .zero), ports)
  }

  /// All runs of a partition, each behind what its author had seen.
  func fold(_ name: PartitionName, _ lag: LedgerLag, progress: () -> Void) throws -> Outcome {
    let partition = name.id(fleet: fleet, hash: cryptography.hash)
    let reader = RunReader(fleet: fleet, hash: cryptography.hash)
    var outcome = Outcome()
    var walk = LedgerWalk(tables, partition)
    let unread = try walk.walk(above: VersionVector()) { run, context in
      progress()
      outcome.highest[run.chain.replica] = max(run.last, outcome.highest[run.chain.replica] ?? 0)
      if lag.covers(try run.row.signed("arrived")) {
        outcome.runsInDoubt += 1
        let isForked = try tables.row(of: .forks, Array(run.row.key.prefix(2))) != nil
        let keys = try reader.documents(writtenBy: run.body, in: partition) { try payload($0, of: partition) }
        // Which branch counts may move with it, and so documents of others.
        outcome.doubtful.add(keys, isAll: isForked)
      }
      let taken = try decoder.inspect(run.body, context: context, in: name, under: authority) { hash in
        guard let bytes = try payload(hash, of: partition) else { throw InspectionError.payloadMissing }
        return bytes
      }
      try take(taken.delivered, run, context, name, &outcome)
    }
    try commit(name, &outcome)
    if !unread.isEmpty { outcome.isWhole = false }
    outcome.accepted = engine.state.mesh.partitions[partition]?.log.accepted ?? VersionVector()
    return outcome
  }

  private var authority: Authority { engine.state.mesh.authority }

  private func payload(_ hash: Digest, of partition: PartitionID) throws -> [UInt8]? {
    try LedgerVerifier.payload(hash, of: partition, in: tables)
  }

  private func take(
    _ run: DeliveredRun, _ row: LedgerRun, _ context: VersionVector, _ name: PartitionName, _ outcome: inout Outcome
  ) throws {
    waiting.append(run)
    let apart = run.incoming.documents.apart?.bytes.count ?? 0
    waitingBytes += row.body.count + apart + context.count * LedgerFolding.contextEntryBytes
    if waitingBytes >= LedgerFolding.byteLimit { try commit(name, &outcome) }
  }

  private func commit(_ name: PartitionName, _ outcome: inout Outcome) throws {
    engine.turn(waiting.map { .ledgerRun(name, $0) })
    // What waits for a look into the store is judged in a later turn.
    engine.turn([])
    if let failure = engine.failure { throw failure }
    for run in waiting where !isHeld(run, name) && !lacksRight(run, name) { outcome.isWhole = false }
    (waiting, waitingBytes) = ([], 0)
  }

  private func isHeld(_ run: DeliveredRun, _ name: PartitionName) -> Bool {
    guard let log = engine.state.mesh.partitions[engine.state.identity.id(of: name)]?.log else { return false }
    return run.incoming.hashes.last.map { log.hasContent(through: run.last, $0, of: run.incoming.replica) } ?? false
  }

  /// No node would take it either.
  private func lacksRight(_ run: DeliveredRun, _ name: PartitionName) -> Bool {
    guard let summary = RunSummary(run, in: name) else {
      return authority.floor(of: run.incoming.replica, in: name) < run.incoming.first
    }
    let chain = ChainIdentity(
      fleet: fleet, partition: engine.state.identity.id(of: name), replica: run.incoming.replica)
    return authority.refusal(of: summary, genesis: chain.genesis(cryptography.hash))?.isLackOfRight ?? false
  }
}

/// Documents of one partition of which something may be on its way: with more than ``limit`` of them, all.
struct DoubtfulDocuments {
  private var keys: Set<DocumentKey> = []
  private(set) var isAll = false

  static let limit = 65_536

  mutating func add(_ more: [DocumentKey], isAll: Bool) {
    guard !self.isAll else { return }
    keys.formUnion(more)
    if isAll || keys.count > DoubtfulDocuments.limit { (keys, self.isAll) = ([], true) }
  }

  func holds(_ key: DocumentKey) -> Bool { isAll || keys.contains(key) }
}
