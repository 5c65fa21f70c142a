// Holdings: the mesh tells the exchange what happens, and carries out what it wants.
extension Mesh {
  /// The records that are stored. Before anything else happens.
  package mutating func restoreHoldings(_ records: [KeptHoldings], _ surroundings: Surroundings) {
    var step = Step(surroundings, configuration)
    withHoldings(&step) { exchange, sight in
      exchange.restore(records, sight)
      return []
    }
  }

  /// The peer is live for certain, or has just shown it.
  mutating func beginHoldings(_ id: SessionID, _ step: inout Step) {
    let needed = KnownFormats.Feature.holdings | KnownFormats.Feature.holdingsQuestions
    guard let session = sessions[id], session.phase == .live, let hello = session.hello, !holdings.knows(id),
      hello.features & cryptography.formats.features & needed == needed
    else { return }
    holdings.live(id, instance: hello.instance, isDialer: session.isDialer, step.now)
  }

  /// Before this side is live it is dropped: the peer may be live already.
  mutating func receiveHoldings(_ id: SessionID, _ message: HoldingsMessage, _ step: inout Step) {
    beginHoldings(id, &step)
    withHoldings(&step) { $0.received(id, message, $1) }
  }

  mutating func holdingsKept(_ records: [(record: KeptHoldings, source: SessionID?)], _ step: inout Step) {
    withHoldings(&step) { $0.kept(records, $1) }
  }

  mutating func tickHoldings(_ step: inout Step) {
    guard holdings.hasPeers || holdings.hasCorrections else { return }
    withHoldings(&step) { $0.tick($1) }
  }

  /// Devices with a session on which both sides speak of holdings of the partition.
  package func hearers(of partition: PartitionID) -> [PublicKey] {
    sessions.values.filter { holdings.knows($0.id) && $0.isInScope(partition, ledger) }.map(\.peer).sorted()
  }

  /// A partition as it is to be judged now, by both clocks; nil where it is not here. `forked`, `stored`: as for receipts.
  package func wipeHolding(
    of partition: PartitionID, _ surroundings: Surroundings, forked: Set<PublicKey>, stored: PartitionLog.StoredTip
  ) -> WipeHolding? {
    let isHeard = ledger.partitions[partition].map { interest.wants(partition, name: $0.name) } ?? false
    let reading = holdings.youngReading(partition, MeshSight(local, ledger, sessions, surroundings))
    return ledger.wipeHolding(
      of: partition, holdings.book, forked: forked, isHeard: isHeard, reading: reading,
      now: surroundings.now, wallMilliseconds: surroundings.wallMilliseconds, stored: stored)
  }

  mutating func withHoldings(
    _ step: inout Step, _ body: (inout HoldingsExchange, MeshSight) -> [HoldingsExchange.Directive]
  ) {
    // Taken out while the exchange looks at the rest, so that neither is copied.
    var exchange = HoldingsExchange()
    swap(&exchange, &holdings)
    let directives = body(&exchange, MeshSight(local, ledger, sessions, step.surroundings))
    swap(&exchange, &holdings)
    for directive in directives {
      switch directive {
      case .keep(let record, let source): step.emit(.keep(record, from: source))
      case .send(let id, let message): step.emit(.send(id, .holdings(message)))
      }
    }
  }
}

/// The mesh as its exchange of holdings sees it.
struct MeshSight: HoldingsSight {
  private let local: LocalIdentity
  private let ledger: Ledger
  private let sessions: SessionTable
  private let surroundings: Surroundings

  init(_ local: LocalIdentity, _ ledger: Ledger, _ sessions: SessionTable, _ surroundings: Surroundings) {
    (self.local, self.ledger, self.sessions, self.surroundings) = (local, ledger, sessions, surroundings)
  }

  var now: MonotonicTime { surroundings.now }
  var wallMilliseconds: Int64 { surroundings.wallMilliseconds }
  var device: PublicKey { local.device }
  var fleet: FleetID { local.fleet }
  var hash: HashFunction { ledger.cryptography.hash }
  var knowsDamage: Bool { surroundings.knowsDamage }
  var partitions: [(PartitionID, PartitionName)] { ledger.partitions.values.map { ($0.id, $0.name) } }

  func id(of name: PartitionName) -> PartitionID { name.id(fleet: local.fleet, hash: ledger.cryptography.hash) }
  func isMember(_ device: PublicKey) -> Bool { ledger.authority.member(of: device) != nil }

  func isWith(_ device: PublicKey, _ session: SessionID) -> Bool { sessions.look(at: session, \.peer) == device }

  func isInScope(_ session: SessionID, _ partition: PartitionID, _ name: PartitionName) -> Bool {
    sessions.look(at: session) { $0.isInScope(partition, name, ledger) } ?? false
  }

  func held(_ partition: PartitionID, _ name: PartitionName) -> HeldVector? {
    guard let log = ledger.partitions[partition]?.log, !log.received.isEmpty else { return nil }
    let own = surroundings.ownReplica.flatMap { replica in
      log.received[replica].map { Holdings.OwnLast(replica: replica, sequence: $0.sequence) }
    }
    let damaged = surroundings.damaged[partition] ?? []
    guard !damaged.isEmpty else { return HeldVector(vector: log.received, ownLast: own) }
    // Whoever lets a device go by this word must find every run here.
    let whole = log.received.entries.filter { !damaged.contains($0.key) }
    return HeldVector(vector: VersionVector(whole), ownLast: own)
  }

  func signedBytes(of holdings: Holdings) -> [UInt8] { ledger.cryptography.holdingsBytes(holdings) }
  func sign(_ message: [UInt8]) -> Signature { ledger.cryptography.sign(message) }
  func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool {
    ledger.cryptography.verify(signature, message, key)
  }
}
