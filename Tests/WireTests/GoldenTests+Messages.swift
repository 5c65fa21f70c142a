import Replication

@testable import Wire

/// One example of every session message, and what the two signed ones are signed over.
extension GoldenTests {
  static let messages: [Example] = hellos + joining + admission + scope + streams + upkeep + told

  private static func example(_ name: String, _ message: Message) -> Example {
    Example(name: "message-\(name)", encoded: MessageCodec.encode(message)) {
      try MessageCodec.decode($0) == message
    }
  }

  private static func bytes(_ name: String, _ bytes: [UInt8]) -> Example {
    Example(name: name, encoded: bytes) { Array($0) == bytes }
  }

  private static let (device, exporter) = (PublicKey(repeating(0x99)), repeating(0xee))
  static let name: PartitionName = {
    guard let name = try? PartitionName("agency=Gabon") else { preconditionFailure("the name is well formed") }
    return name
  }()
  private static let interest = Interest(partitions: [partition], prefixes: ["agency=", "user="])
  private static let tip = TipHash(high: 1, low: 2)

  private static let hellos: [Example] = {
    var hello = Hello(
      fleetProof: fleetProof.proof(ofDialer: true), instance: UUIDValue(high: 5, low: 6),
      wallMilliseconds: 1_700_000_000_000, listenPort: 41_234,
      authority: fleetProof.mark(repeating(0xd1), .authority, ofDialer: true),
      interest: fleetProof.mark(interest.digest(sha256), .interest, ofDialer: true))
    let signed = hello.signedBytes(device: device, exporter: exporter, isDialer: true)
    hello.signature = signature
    return [
      example("hello", .hello(hello)), bytes("hello-signed-bytes", signed),
      bytes("interest-digest", interest.digest(sha256).bytes), bytes("fleet-proof", hello.fleetProof.bytes),
      bytes("mark-authority", hello.authority.bytes),
      example("credential-request", .credentialRequest(fleetProof: fleetProof.proof(ofDialer: false))),
      example("credentials", .credentials([statements[1].encoded])),
    ]
  }()

  private static let fleetProof = FleetProof(
    fleet, exporter: exporter, hash: sha256, authenticationCode: { key, message in hmac(key, message) })

  private static let joining: [Example] = {
    let code = repeating(0xc0)
    var request = JoinRequest(
      fleetProof: fleetProof.proof(ofDialer: true),
      invitation: InvitationID(inviter: PublicKey(repeating(0x77)), serial: 3), device: device,
      label: "tablet 3", proof: code)
    let asked = JoinProof.ofJoiner(request, to: fleet, exporter: exporter)
    request.extensions = MessageExtensions([.init(key: 9, content: [1, 2])])
    let acceptance = JoinAcceptance(proof: code)
    return [
      example("join-request", .joinRequest(request)), bytes("join-proved-bytes", asked),
      bytes("join-answer-bytes", JoinProof.ofInviter(acceptance, to: request, of: fleet, exporter: exporter)),
      example("join-accepted", .joinAccepted(acceptance)),
      example("join-refused", .joinRefused(.askInviter(label: "office"))),
    ]
  }()

  private static func held(_ names: [String]) -> ScopeStatements {
    let examples = statements.filter { names.contains($0.name) }
    return ScopeStatements(examples.compactMap { try? StatementCodec.decode($0.encoded[...], sha256) })
  }

  private static let admission: [Example] = {
    let (dialer, listener) = (held(["statement-rule"]), held(["statement-grant"]))
    let buckets = listener.buckets(sha256)
    func set(_ name: String, _ step: StatementSet.Step) -> Example {
      example("statement-set-\(name)", .statementSet(StatementSet(scope: "", step)))
    }
    let listed = dialer.differing(from: buckets, sha256)
    let told = dialer.list(listed)
    return [
      set("buckets", .buckets(buckets)), set("tips", .tips(listed: listed, told)),
      set("wanted", .wanted(listener.wanted(of: told))),
      example("statements", .statements([statements[5].encoded])),
      example("statements-complete", .statementsComplete()),
    ]
  }()

  private static let scope: [Example] = {
    let vectorDigest = context.digest(.vector, sha256)
    let proof = ForkProof(
      replica: other, sequence: 7, hashBefore: repeating(0x10), first: repeating(0x21), second: repeating(0x32))
    let above = VersionVector([replica: ChainPosition(sequence: 9, tip: TipHash(high: 3, low: 4))])
    let forkedDigest = [proof].digest(beside: vectorDigest, sha256)
    let (term, forkedTerm) = (
      Summary.term(of: partition, vectorDigest, exporter: exporter, sha256),
      Summary.term(of: partition, forkedDigest, exporter: exporter, sha256)
    )
    let heldDigest = above.digest(besideHeld: forkedDigest, sha256)
    let said = Authority.digest(of: [repeating(0xbb), repeating(0xcc)], sha256)
    let room = PartitionTable.Room(name: name, statements: said)
    let (prefix, bucket) = (Summary.prefix(of: partition), Summary.bucket(of: partition))
    var buckets = [UInt64](repeating: 0, count: Summary.bucketCount)
    buckets[bucket] = term
    let listing = BucketListing(bucket: bucket, entries: [.init(prefix: prefix, term: term)])
    func summary(_ name: String, _ step: Summary.Step) -> Example { example(name, .summary(Summary(3, step))) }
    return [
      example("interest-request", .interestRequest), example("interest", .interest(interest)),
      example(
        "interest-change",
        .interestChange(added: Interest(prefixes: ["all-"]), removed: Interest(partitions: [partition]))),
      bytes("vector-digest", vectorDigest.bytes), bytes("forked-partition-digest", forkedDigest.bytes),
      bytes("held-partition-digest", heldDigest.bytes),
      bytes("room-partition-digest", room.digest(beside: heldDigest, sha256).bytes),
      summary("summary", .digest(term)), summary("summary-forked", .digest(forkedTerm)),
      summary("summary-equal", .equal), summary("summary-buckets", .buckets(buckets)),
      summary("summary-partitions", .partitions(equal: ~(1 << UInt64(bucket)), [listing])),
      summary("summary-differing", .differing([prefix])),
    ]
  }()

  private static let streams: [Example] = {
    let vector = PartitionVector(name: name, vector: context)
    let part = PartitionVector(name: name, vector: context, hasMore: true)
    let staged = StagedPayload(hash: repeating(0x77), byteCount: 65_536)
    let gone = ReplicaID(high: 0xb0b1_b2b3_b4b5_b6b7, low: 0xb8b9_babb_bcbd_bebf)
    let told = VersionVector([
      other: ChainPosition(sequence: 8, tip: TipHash(high: 1, low: 2)),
      gone: ChainPosition(sequence: 3, tip: TipHash(high: 3, low: 4)),
    ])
    var differences = context
    differences[gone] = ChainPosition(sequence: 0, tip: .zero)
    let differing = PartitionVector(name: name, vector: differences, base: told.digest(.vector, sha256).words.0)
    let increment = ContextForm.Increment(replica: other, position: ChainPosition(sequence: 0, tip: .zero))
    return [
      example("vectors", .vectors([vector])), example("vectors-part", .vectors([part])),
      example("pull", .pull(stream: 2, vector)),
      example("pull-staged", .pull(stream: 3, PartitionVector(name: name, vector: context, staged: [staged]))),
      example("pull-differing", .pull(stream: 4, differing)),
      example(
        "runs",
        .runs(
          RunBatch(
            name: name, stream: 2,
            entries: [
              .init(context: .full(context), encoded: run.encoded[...]),
              .init(context: .increments([increment]), encoded: held.encoded[...]),
            ]))),
      example(
        "payload-piece",
        .payloadPiece(
          PayloadPiece(
            name: name, stream: 2, hash: repeating(0x77), total: 65_539, offset: 65_536, bytes: [7, 8, 9]))),
      example("have", .have(vector)),
    ]
  }()

  private static let told: [Example] = {
    let position = ChainPosition(sequence: 12, tip: TipHash(high: 5, low: 6))
    func subject(_ kind: Holdings.Kind) -> Holdings.Subject { Holdings.Subject(device: device, kind: kind) }
    let whole = VersionVector([
      other: ChainPosition(sequence: 9, tip: tip), replica: ChainPosition(sequence: 3, tip: TipHash(high: 3, low: 4)),
    ])
    let items = [
      HoldingsItem(
        partition: name, subject: subject(.received), number: 7, base: 0, entries: .full(whole),
        ownLast: Holdings.OwnLast(replica: replica, sequence: 4), signature: signature),
      HoldingsItem(
        partition: name, subject: subject(.backend), number: 9, base: 7,
        entries: .increments([
          ContextForm.Increment(replica: replica, position: ChainPosition(sequence: 0, tip: .zero)),
          ContextForm.Increment(replica: other, position: position),
        ]), ownLast: nil, signature: signature),
    ]
    let numbers = [subject(.received): UInt64(7), subject(.backend): 9]
    let sum = HoldingsBook.sum(of: partition, numbers, sha256)
    let known = [HoldingsQuestion.Known(partition: name, numbers: numbers)]
    func question(_ name: String, _ question: HoldingsQuestion) -> Example {
      example("holdings-\(name)", .holdings(.question(question)))
    }
    return [
      example("holdings", .holdings(.records(items))),
      bytes("holdings-sum-digest", withUnsafeBytes(of: sum.bigEndian) { Array($0) }),
      question("sum", .sum(sum, isAnswer: false)), question("sum-answer", .sum(sum, isAnswer: true)),
      question("list", .list([HoldingsQuestion.Listed(prefix: Summary.prefix(of: partition), sum: sum)])),
      question("known", .known(known, wantsBack: true)), question("known-back", .known(known, wantsBack: false)),
      question("fresh", .fresh([name])),
    ]
  }()

  private static let upkeep: [Example] = {
    let positions = [ChainPosition(sequence: 64, tip: .zero), ChainPosition(sequence: 65, tip: tip)]
    return [
      example(
        "chain-probe", .chainProbe(ChainProbe(name: name, replica: replica, positions: positions, wantsReply: true))),
      example("ping", .ping(nonce: .max)), example("pong", .pong(nonce: .max)),
      example("goodbye", .goodbye(.duplicate)),
      example(
        "neighbours",
        .neighbours(NeighbourNews(added: [DeviceMark(word: 1), DeviceMark(word: 256)], removed: [DeviceMark(word: 2)]))),
      example(
        "push-choice", .pushChoice(PushChoice(name, eager: [replica], lazy: [ReplicaID(high: 0, low: 5), other]))),
    ]
  }()
}
