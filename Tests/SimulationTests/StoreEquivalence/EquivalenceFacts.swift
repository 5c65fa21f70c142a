import Engine
import Replication
import TestSupport

/// Calls beside runs and documents, and questions.
extension EquivalenceWorld {
  mutating func factStep() -> EquivalenceStep {
    let pattern = Text(["agency=*", "agency=A", "c", "*", "ü"][number(0..<5)])
    switch number(0..<9) {
    case 8:
      let (kept, partition) = (holdings(), partitions[number(0..<partitions.count)])
      return EquivalenceStep(writing: "holdings") { try $0.put(kept, in: partition.id) }
    case 6:
      let invitation = invitation()
      return EquivalenceStep(writing: "invitation") { try $0.put(invitation) }
    case 7:
      let serial = UInt64(number(0..<4))
      return EquivalenceStep(writing: "remove invitation") { try $0.removeInvitation(serial) }
    case 0:
      let statement = Self.statement(UInt64(number(0..<6)))
      return EquivalenceStep(writing: "statement") { try $0.add(statement) }
    case 1: return EquivalenceStep(writing: "subscribe") { try $0.subscribe(pattern) }
    case 2: return EquivalenceStep(writing: "unsubscribe") { try $0.unsubscribe(pattern) }
    case 3:
      let replica = Incarnation(id: Self.replicas[number(0..<3)], nonce: UUIDValue(high: 1, low: random.next()))
      return EquivalenceStep(writing: "replica") { try $0.setReplica(replica) }
    case 4:
      let (commits, timestamp) = (random.next(), HybridTimestamp(rawValue: random.next()))
      return EquivalenceStep(writing: "progress") { try $0.setProgress(commits: commits, timestamp: timestamp) }
    default:
      let (device, time) = (DeviceID(Self.digest(UInt64(number(0..<3)))), Int64(number(0..<20)))
      let address = chance(3) ? nil : "10.0.0.\(number(0..<7)):1"
      return EquivalenceStep(writing: "contact") { try $0.noteContact(device, address: address, time: time) }
    }
  }

  private mutating func invitation() -> Invitation {
    let bytes = [UInt8](repeating: UInt8(number(0..<5)), count: InvitationSecret.byteCount)
    guard let secret = InvitationSecret(bytes) else { preconditionFailure("a secret of the right length") }
    let states: [Invitation.State] = [.open, .cancelled, .used(PublicKey(Self.digest(7)))]
    let profile = chance(2) ? ValueMap() : ValueMap(ascending: [.init(key: "agency", value: .string("ü"))])
    return Invitation(
      serial: chance(9) ? .max : UInt64(number(0..<4)), secret: secret, user: "u", role: chance(2) ? "" : "officer",
      profile: profile, expires: Int64(number(0..<9)) - 1, state: states[number(0..<3)])
  }

  private mutating func holdings() -> KeptHoldings {
    let signature = Signature([UInt8](repeating: 0, count: Signature.byteCount))
    guard let signature else { preconditionFailure("a signature of the right length") }
    let position = ChainPosition(sequence: 1 + UInt64(number(0..<9)), tip: .zero)
    let holdings = Holdings(
      fleet: Self.fleet, device: PublicKey(Self.digest(UInt64(number(0..<3)))),
      partition: partitions[number(0..<partitions.count)].name, number: 1 + UInt64(number(0..<9)),
      vector: VersionVector([Self.replicas[number(0..<3)]: position]), kind: chance(3) ? .backend : .received,
      ownLast: nil)
    return KeptHoldings(SignedHoldings(holdings, signature: signature), heard: Int64(number(0..<99)))
  }

  static func statement(_ number: UInt64) -> Statement {
    let signature = Signature([UInt8](repeating: 0, count: Signature.byteCount))
    guard let signature else { preconditionFailure("a signature of the right length") }
    return Statement(
      fleet: fleet, issuer: PublicKey(digest(2)), sequence: number, previous: nil,
      body: .unknown(Statement.Unknown(kind: 99)), signature: signature, id: digest(number),
      encoded: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 9))
  }

  mutating func partitionSteps() -> [EquivalenceStep] {
    let partition = partitions[number(0..<partitions.count)]
    let removal = EquivalenceStep(writing: "remove partition") { try $0.removePartition(partition.id) }
    let addition = EquivalenceStep(writing: "add partition") { try $0.addPartition(partition.id, partition.name) }
    return switch number(0..<4) {
    case 0: [addition, removal]
    case 1: [removal, addition]
    case 2: [removal]
    default: [addition]
    }
  }

  mutating func markSteps() -> [EquivalenceStep] {
    let partition = partitions[number(0..<partitions.count)]
    let replica = Self.replicas[number(0..<3)]
    let (near, far) = (UInt64(number(0..<9)), UInt64(number(0..<3)))
    if chance(3) {
      let origin = ChangeOrigin(dot: Dot(replica: replica, sequence: near + 1), hash: Self.digest(near))
      let reissue = Reissue(dot: Dot(replica: replica, sequence: far + 1), hash: Self.digest(far), origin: origin)
      return [EquivalenceStep(writing: "reissue") { try $0.add(reissue, in: partition.id) }]
    }
    let chain = ChainIdentity(fleet: Self.fleet, partition: partition.id, replica: replica)
    let marks = ChainMarks(
      received: Engine.ChainMark(sequence: near + far, hash: Self.digest(far)),
      accepted: Engine.ChainMark(sequence: near, hash: Self.digest(near)), isForked: chance(3))
    return [EquivalenceStep(writing: "marks") { try $0.setMarks(marks, of: chain) }]
  }

  mutating func payloadSteps() -> [EquivalenceStep] {
    let hash = Self.digest(UInt64(number(0..<4)))
    let key = Self.stagedKeys[number(0..<Self.stagedKeys.count)]
    switch number(0..<6) {
    case 0: return [EquivalenceStep(writing: "remove pieces") { try $0.removePieces(key) }]
    case 1:
      let payload = ApartPayload(hash: hash, bytes: random.bytes(number(0..<9))[...])
      return [EquivalenceStep(writing: "large payload") { try $0.addLargePayload(payload) }]
    default:
      let (bytes, isWhole) = (random.bytes(number(1..<7)), chance(5))
      return [
        EquivalenceStep(writing: "piece") { log in
          let present = try log.stagedShares().first { $0.key == key }?.byteCount ?? 0
          let share = StagedShare(key, total: 99, byteCount: present + UInt64(bytes.count), isWhole: isWhole)
          try log.addPiece(bytes[...], to: share)
        }
      ]
    }
  }

  /// Of three payloads, each from two devices.
  static let stagedKeys: [StagedKey] = (0..<6).map { number in
    StagedKey(device: DeviceID(digest(number % 2)), partition: PartitionID(digest(5)), hash: digest(number / 2))
  }

  // MARK: Questions

  mutating func question() -> EquivalenceStep {
    let partition = partitions[number(0..<partitions.count)]
    let limit = number(0..<6)
    switch number(0..<10) {
    case 0: return EquivalenceStep("statements") { try $0.statementBytes() }
    case 1: return EquivalenceStep("subscriptions") { try $0.subscriptions() }
    case 2: return EquivalenceStep("own facts") { try $0.ownFacts() }
    case 3: return EquivalenceStep("partitions") { try $0.logPartitions() }
    case 4: return EquivalenceStep("chains") { try $0.logChains() }
    case 5: return EquivalenceStep("staged") { try $0.stagedShares() }
    case 6: return EquivalenceStep("staged bytes") { try $0.stagedBytes(Self.stagedKeys[limit]) }
    case 7: return EquivalenceStep("reissues") { try $0.reissues(in: partition.id) }
    case 8: return EquivalenceStep("document") { try Self.documents($0, partition) }
    default: return runsQuestion(partition, Self.replicas[number(0..<3)])
    }
  }

  /// Limits stand at the edges: just as many bytes as some of the runs have, one less, one more.
  private mutating func runsQuestion(_ partition: Partition, _ replica: ReplicaID) -> EquivalenceStep {
    let id = ChainIdentity(fleet: Self.fleet, partition: partition.id, replica: replica)
    let sizes = partition.chains[replica]?.bodySizes ?? []
    let sum = sizes.prefix(number(0..<sizes.count + 1)).reduce(0, +)
    let limit = [0, max(0, sum - 1), sum, sum + 1, .max][number(0..<5)]
    let above = chance(10) ? UInt64.max : UInt64(number(0..<Int(partition.chains[replica]?.end ?? 0) + 2))
    if chance(5) { return EquivalenceStep("last run") { try $0.lastRun(of: id) } }
    return EquivalenceStep("runs above \(above) within \(limit)") {
      try $0.runs(of: id, after: above, byteLimit: limit)
    }
  }

  private static func documents(_ log: any LogReading, _ partition: Partition) throws -> [DocumentKey: DocumentAnswer] {
    var found: [DocumentKey: DocumentAnswer] = [:]
    for key in partition.touched.union(partition.loose).union([DocumentKey(collection: "never", id: .int(1))]) {
      found[key] = try log.document(key, in: partition.id).map(DocumentAnswer.init)
    }
    return found
  }

  /// Everything that can be asked, of everything there is.
  func questionsAboutAll() -> [(name: String, ask: (any LogReading) throws -> AnyHashable)] {
    var all: [(name: String, ask: (any LogReading) throws -> AnyHashable)] = [
      ("statements", { try $0.statementBytes() }), ("subscriptions", { try $0.subscriptions() }),
      ("invitations", { try $0.invitations() }), ("holdings", { try $0.holdings() }),
      ("own facts", { try $0.ownFacts() }), ("partitions", { try $0.logPartitions() }),
      ("chains", { try $0.logChains() }), ("staged", { try $0.stagedShares() }),
    ]
    for arrival in [0, 3] as [Int64] {
      all.append(("ends before later runs", { try $0.ends(beforeRunsBehind: arrival) }))
    }
    for key in Self.stagedKeys { all.append(("staged bytes", { try $0.stagedBytes(key) })) }
    for hash in (0..<4).map(Self.digest) {
      all.append(("large payload", { try $0.largePayload(hash) }))
    }
    for partition in partitions {
      all.append(("documents", { try Self.documents($0, partition) }))
      all.append(("reissues", { try $0.reissues(in: partition.id) }))
      for replica in Self.replicas {
        let id = ChainIdentity(fleet: Self.fleet, partition: partition.id, replica: replica)
        all.append(("runs", { try $0.runs(of: id, after: 0, byteLimit: .max) }))
        all.append(("last run", { try $0.lastRun(of: id) }))
      }
    }
    return all
  }
}

/// Without the number of its row, which is the store's own affair.
private struct DocumentAnswer: Hashable {
  let isAlive: Bool
  let hasRow: Bool
  let state: [UInt8]

  init(_ document: LogDocument) {
    (isAlive, hasRow, state) = (document.isAlive, document.row != nil, document.state)
  }
}
