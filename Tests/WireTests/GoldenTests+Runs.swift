import Replication

@testable import Wire

extension GoldenTests {
  static let context = VersionVector([other: ChainPosition(sequence: 9, tip: TipHash(high: 1, low: 2))])

  private static func header(_ sequence: UInt64) -> ChangeHeader {
    ChangeHeader(
      sequence: sequence, timestamp: HybridTimestamp(milliseconds: 1_700_000_000_000 + sequence * 40, counter: 1),
      wall: WallTime(milliseconds: 1_700_000_000_000 - Int64(sequence)), payloadByteCount: 0, payloadHash: .zero,
      keyHashes: [])
  }

  private static func plain(_ header: ChangeHeader, _ writes: [DocumentWrite]) -> Change {
    let dot = Dot(replica: replica, sequence: header.sequence)
    let payload = PayloadEncoder.encode(writes, dot: dot)
    guard let change = try? Change.plain(header, payload: payload, chain: chain, sha256).change else {
      preconditionFailure("the example is well formed")
    }
    return change
  }

  private static func edit(_ note: Text) -> [DocumentWrite] {
    let operation = Operation(.set, [.key("notes")], value: .string(note))
    return [DocumentWrite(collection: "Vessel", id: .int(7), kind: .edit, generation: 1, operations: [operation])]
  }

  private static func makeRun(_ changes: [Change]) -> Run {
    let digest = RunRecord.digest(of: context, sha256)
    var hash = chain.genesis(sha256)
    let before = hash
    let hashes = changes.map { change in
      hash = change.header.chainHash(chain: chain, previous: hash, contextDigest: digest, sha256)
      return hash
    }
    let record = RunRecord(
      chain: chain, first: 1, last: UInt64(changes.count), hashBefore: before, context: context, contextDigest: digest,
      hashAtLast: hash, signature: signature)
    return Run(record: record, changes: changes, hashes: hashes)
  }

  private static func example(_ name: String, _ run: Run, headersOnly: Set<Int> = []) -> Example {
    let form: RunForm = headersOnly.isEmpty ? .whole : .withHeadersOnly
    return Example(name: name, encoded: RunCodec.encode(run, headersOnly: headersOnly)) { bytes in
      let decoded = try RunCodec.decode(bytes, fleet: fleet, partition: partition, form: form, hash: sha256)
      let again = try decoded.run(context: context, sha256)
      return again.record == run.record && again.hashes == run.hashes
        && again.changes.map(\.header) == run.changes.map(\.header)
    }
  }

  static let singleRun = makeRun([plain(header(1), writes)])
  static let run = example("run-single", singleRun)

  static let longRun: Example = {
    var second = header(2)
    second.wall = WallTime(milliseconds: 1_700_000_000_100)
    second.extensions = [
      ChangeExtension(type: ChangeExtension.Registered.schemaVersion, content: [0, 0, 0, 4]),
      ChangeExtension(type: ChangeExtension.Registered.onBehalfOf, content: Array("ana@example.org".utf8)),
      ChangeExtension(type: ChangeExtension.Registered.wallSource, content: [2, 0, 0, 0, 30]),
      ChangeExtension(type: ChangeExtension.Registered.cause, content: [0] + replica.bytes + [0, 0, 0, 0, 0, 0, 0, 1]),
    ]
    var third = header(3)
    let origin = ChangeOrigin(dot: Dot(replica: other, sequence: 5), hash: repeating(0x33))
    third.extensions = [ChangeExtension(type: 0x0203, content: [4, 5]), ChangeExtension(origin)]
    return example(
      "run-extensions",
      makeRun([plain(header(1), edit("calm")), plain(second, edit("rough")), plain(third, edit("night"))]))
  }()

  static let apart: Example = {
    let large = Text(String(repeating: "x", count: Run.inlinePayloadByteLimit))
    return example("run-apart", makeRun([plain(header(1), edit(large))]))
  }()

  static let held: Example = {
    var sealed = header(1)
    sealed.codec = .sealed
    sealed.extensions = [ChangeExtension(type: ChangeExtension.Registered.keyEpoch, content: [0, 0, 0, 6])]
    sealed.keyHashes = [KeyHash(high: 5, low: 6)]
    sealed.payloadByteCount = 3
    sealed.payloadHash = Digest.of([7, 8, 9], sha256)
    return example("run-sealed", makeRun([Change(header: sealed, payload: [7, 8, 9])]))
  }()

  /// A change whole and the one behind it as its header alone, which names what it writes.
  static let headersOnly = example(
    "run-headers-only", makeRun([plain(header(1), edit("calm")), plain(header(2), edit("rough"))]), headersOnly: [1])

  /// Hashes and signed bytes of `run-single`, for who builds them in another language.
  static let hashes: [Example] = {
    let (record, header) = (singleRun.record, singleRun.changes[0].header)
    return [
      ("genesis-hash", record.hashBefore.bytes), ("context-digest", record.contextDigest.bytes),
      ("payload-hash", header.payloadHash.bytes), ("key-hashes", header.keyHashes.flatMap(\.bytes)),
      ("chain-hash", singleRun.hashes[0].bytes), ("run-signed-bytes", record.signedBytes),
    ].map { name, encoded in Example(name: name, encoded: encoded) { Array($0) == encoded } }
  }()

  static let contexts: [Example] = {
    var next = context
    next[other] = nil
    next[ReplicaID(high: 1, low: 1)] = ChainPosition(sequence: 300, tip: TipHash(high: 3, low: 4))
    var wide = context
    for low in 1...3 as ClosedRange<UInt64> {
      wide[ReplicaID(high: 9, low: low)] = ChainPosition(sequence: low, tip: .zero)
    }
    var increased = wide
    increased[other] = nil
    increased[ReplicaID(high: 9, low: 2)] = ChainPosition(sequence: 4, tip: TipHash(high: 5, low: 6))
    return [("context-whole", next, context), ("context-increments", increased, wide)].map { name, value, base in
      Example(name: name, encoded: ContextCodec.encode(value, base: base)) {
        try ContextCodec.decode($0, base: base) == value
      }
    }
  }()

  private static let roomKinds: Set<String> = ["statement-invitation", "statement-removal", "statement-leave"]

  static let statements: [Example] = {
    let (root, device) = (PublicKey(repeating(0x88)), PublicKey(repeating(0x99)))
    let membership = Statement.Membership(
      device: device, user: "ana@example.org", label: "tablet 3", role: "officer",
      profile: ValueMap(unique: [.init(key: "agency", value: .string("Gabon"))]))
    let end = ChainPosition(sequence: 7, tip: TipHash(high: 5, low: 6))
    let tip = Statement.Tip(issuer: device, sequence: 3, id: repeating(0xcc))
    let ends = [
      Statement.PartitionEnds(
        partition: "agency=Gabon", chains: [Statement.ChainEnd(replica: replica, position: end)])
    ]
    let listing = Statement.Listing(
      ends: ends, tips: [Statement.ScopeTips(scope: "", tips: [tip])], keep: ["agency=B*"])
    let raised = Statement.Listing(ends: ends, tips: listing.tips)
    let bodies: [(String, Statement.Body)] = [
      ("statement-genesis", .genesis(.init(fleetName: "Gabon patrol"))),
      ("statement-membership", .membership(membership)),
      (
        "statement-replica",
        .replica(.init(replica: replica, nonce: UUIDValue(high: 1, low: 2), membership: repeating(0xbb)))
      ),
      ("statement-grant", .grant(.init(subject: .user("ana@example.org"), level: .write, pattern: "agency=*"))),
      (
        "statement-lowering",
        .grant(.init(subject: .everyone, level: .read, pattern: "agency=*", listing: listing))
      ),
      ("statement-rule", .rule(.init(key: "all-users", fields: ["vessel"]))),
      ("statement-end", .end(.init(reason: .retire, target: .membership(repeating(0xbb)), listing: listing))),
      ("statement-raise", .raise(.init(end: repeating(0xdd), listing: raised))),
      (
        "statement-baseline",
        .baseline(
          .init(partition: "agency=Gabon", entries: [.init(replica: replica, position: end, ownLast: 9)]))
      ),
      ("statement-room", .room(.init(by: repeating(0xbb)))),
      ("statement-invitation", .invitation(.init(by: repeating(0xbb), user: "joe", seen: [repeating(0xee)]))),
      (
        "statement-removal",
        .removal(.init(by: repeating(0xbb), user: "joe", seen: [repeating(0xee)], listing: raised))
      ),
      ("statement-leave", .leave(.init(by: repeating(0xbb), user: "joe", seen: []))),
    ]
    let previous = Statement.Link(sequence: 4, id: repeating(0xcc))
    let notes = StatementNotes([
      .init(key: StatementNotes.Key.issuedAt, content: [0, 0, 1, 0x93, 0x5a, 0, 0, 0]),
      .init(key: StatementNotes.Key.invitationSerial, content: [0, 0, 0, 0, 0, 0, 0, 7]),
      .init(key: StatementNotes.Key.encryptionKey, content: [UInt8](repeating: 0xd4, count: 32)),
    ])
    return bodies.map { name, body in
      let (isMembership, isRoom) = (name == "statement-membership", name == "statement-room")
      guard
        let unsigned = try? StatementCodec.unsigned(
          fleet: fleet, issuer: root, after: name == "statement-genesis" || isRoom ? nil : previous,
          scope: roomKinds.contains(name) ? "conversation=1" : "", body: body,
          notes: isMembership ? notes : StatementNotes()),
        let statement = try? StatementCodec.assemble(unsigned: unsigned, signature: signature, sha256)
      else { preconditionFailure("the example is well formed") }
      return Example(name: name, encoded: statement.encoded) { try StatementCodec.decode($0, sha256) == statement }
    }
  }()
}
