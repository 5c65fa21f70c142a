import Replication

@testable import Wire

/// One example of every session message, and what the two signed ones are signed over.
extension GoldenTests {
  static let messages: [Example] = hellos + joining + admission + scope + streams + upkeep

  private static func example(_ name: String, _ message: Message) -> Example {
    Example(name: "message-\(name)", encoded: MessageCodec.encode(message)) {
      try MessageCodec.decode($0) == message
    }
  }

  private static func bytes(_ name: String, _ bytes: [UInt8]) -> Example {
    Example(name: name, encoded: bytes) { Array($0) == bytes }
  }

  private static let (device, exporter) = (PublicKey(repeating(0x99)), repeating(0xee))
  private static let name: PartitionName = {
    guard let name = try? PartitionName("agency=Gabon") else { preconditionFailure("the name is well formed") }
    return name
  }()
  private static let interest = Interest(partitions: [partition], prefixes: ["agency=", "user="])
  private static let tip = TipHash(high: 1, low: 2)

  private static let hellos: [Example] = {
    var hello = Hello(
      fleet: fleet, device: device, instance: UUIDValue(high: 5, low: 6), replica: replica, ownCommits: 1_000,
      wallMilliseconds: 1_700_000_000_000, listenPort: 41_234, authority: repeating(0xd1),
      interest: interest.digest(sha256), credentials: [statements[1].encoded])
    let signed = hello.signedBytes(exporter: exporter, isDialer: true, sha256)
    hello.signature = signature
    return [
      example("hello", .hello(hello)), bytes("hello-signed-bytes", signed),
      bytes("interest-digest", interest.digest(sha256).bytes),
    ]
  }()

  private static let joining: [Example] = {
    var request = JoinRequest(
      fleet: fleet, device: device, user: "ana@example.org", label: "tablet 3", role: "officer",
      profile: ValueMap(unique: [.init(key: "agency", value: .string("Gabon"))]))
    let signed = request.signedBytes(exporter: exporter)
    request.proof = signature
    return [
      example("join-request", .joinRequest(request)), bytes("join-signed-bytes", signed),
      example("join-accepted", .joinAccepted), example("join-refused", .joinRefused(.wrongCode)),
    ]
  }()

  private static let admission = [
    example("statement-ids", .statementIDs([tip, TipHash(high: 3, low: 4)])),
    example("statements", .statements([statements[4].encoded])),
    example("statements-complete", .statementsComplete),
  ]

  private static let scope: [Example] = {
    let vectorDigest = context.digest(.vector, sha256)
    let bucket = DomainTag.summary.bytes + exporter.bytes + partition.digest.bytes + vectorDigest.bytes
    var buckets = [UInt64](repeating: 0, count: Summary.bucketCount)
    buckets[Summary.bucket(of: partition)] = Digest.of(bucket, sha256).words.0
    return [
      example("interest-request", .interestRequest), example("interest", .interest(interest)),
      example(
        "interest-change",
        .interestChange(added: Interest(prefixes: ["all-"]), removed: Interest(partitions: [partition]))),
      bytes("vector-digest", vectorDigest.bytes), example("summary", .summary(Summary(buckets: buckets))),
    ]
  }()

  private static let streams: [Example] = {
    let vector = PartitionVector(name: name, vector: context)
    let staged = StagedPayload(hash: repeating(0x77), byteCount: 65_536)
    let increment = ContextForm.Increment(replica: other, position: ChainPosition(sequence: 0, tip: .zero))
    return [
      example("vectors", .vectors([vector])), example("pull", .pull(stream: 2, vector)),
      example("pull-staged", .pull(stream: 3, PartitionVector(name: name, vector: context, staged: [staged]))),
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
        .payloadPiece(PayloadPiece(hash: repeating(0x77), total: 65_539, offset: 65_536, bytes: [7, 8, 9]))),
      example("have", .have(vector)),
    ]
  }()

  private static let upkeep: [Example] = {
    let positions = [ChainPosition(sequence: 64, tip: .zero), ChainPosition(sequence: 65, tip: tip)]
    return [
      example(
        "chain-probe", .chainProbe(ChainProbe(name: name, replica: replica, positions: positions, wantsReply: true))),
      example("ping", .ping(nonce: .max)), example("pong", .pong(nonce: .max)),
      example("goodbye", .goodbye(.duplicate)),
    ]
  }()
}
