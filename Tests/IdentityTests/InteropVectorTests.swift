import Foundation
import Replication
import Testing
import Wire

@testable import Identity

/// The bytes of the outside peer (`Tests/Interop`), which shares no code with this one, made again and read.
@Suite struct InteropVectorTests {
  private let vectors: InteropVectors

  init() throws {
    vectors = try InteropVectors.stored()
  }

  private var fleet: FleetID { get throws { FleetID(try vectors.identity.fleet.digest) } }

  @Test("ids and keys follow from the same inputs")
  func identifiers() throws {
    let expected = vectors.identity
    let root = try #require(SigningKey(seed: expected.root_seed.bytes))
    let device = try #require(SigningKey(seed: expected.device_seed.bytes))
    let nonce = try #require(UUIDValue(expected.nonce.bytes))
    #expect(FleetID(root: root.publicKey).text == expected.fleet.text)
    #expect(Hex.encode(device.publicKey.bytes) == expected.device_key.text)
    #expect(DeviceID(device.publicKey).text == expected.device.text)
    let replica = ReplicaID.derived(device: DeviceID(device.publicKey), nonce: nonce, SHA256.hash)
    #expect(replica.text == expected.replica.text)
    let partition = try PartitionName(Text(expected.partition_name)).id(fleet: try fleet, hash: SHA256.hash)
    #expect(partition.digest.text == expected.partition.text)
    let tag = DiscoveryTag.make(fleet: try fleet, instanceName: expected.instance)
    #expect(Hex.encode(tag) == expected.discovery_tag.text)
  }

  @Test("a hello and its answer hold on their connection, and are made again byte for byte", arguments: [true, false])
  func hello(isDialer: Bool) throws {
    let device = try #require(SigningKey(seed: vectors.identity.device_seed.bytes))
    let exporter = try vectors.identity.exporter.digest
    let encoded = isDialer ? vectors.messages.hello : vectors.messages.answer
    guard case .hello(let hello) = try MessageCodec.decode(encoded.bytes[...]) else {
      Issue.record("not a hello")
      return
    }
    let message = hello.signedBytes(device: device.publicKey, exporter: exporter, isDialer: isDialer)
    #expect(Ed25519.verify(hello.signature, message, device.publicKey))
    #expect(device.sign(message) == hello.signature)
    let proof = FleetProof(try fleet, exporter: exporter, hash: SHA256.hash, authenticationCode: HMAC.sha256)
    #expect(hello.fleetProof == proof.proof(ofDialer: isDialer))
    #expect(Hex.encode(MessageCodec.encode(.hello(hello))) == encoded.text)
  }

  @Test("a request to join and its answer show the invitation's secret")
  func joinRequest() throws {
    let encoded = vectors.messages.join_request
    guard case .joinRequest(let request) = try MessageCodec.decode(encoded.bytes[...]) else {
      Issue.record("not a request to join")
      return
    }
    let (secret, exporter) = (vectors.identity.secret.bytes, try vectors.identity.exporter.digest)
    #expect(HMAC.sha256(key: secret, JoinProof.ofJoiner(request, to: try fleet, exporter: exporter)) == request.proof)
    #expect(Hex.encode(MessageCodec.encode(.joinRequest(request))) == encoded.text)
    let answer = vectors.messages.join_accepted
    guard case .joinAccepted(let acceptance) = try MessageCodec.decode(answer.bytes[...]) else {
      Issue.record("not an answer")
      return
    }
    let answered = JoinProof.ofInviter(acceptance, to: request, of: try fleet, exporter: exporter)
    #expect(HMAC.sha256(key: secret, answered) == acceptance.proof)
    #expect(Hex.encode(MessageCodec.encode(.joinAccepted(acceptance))) == answer.text)
  }

  @Test("every other message is understood, and made again byte for byte")
  func messages() throws {
    for encoded in vectors.messages.others {
      let message = try #require(try MessageCodec.decode(encoded.bytes[...]))
      #expect(Hex.encode(MessageCodec.encode(message)) == encoded.text)
    }
  }

  @Test("the certificate of a key is the same, made by another library")
  func certificate() throws {
    let device = try #require(SigningKey(seed: vectors.identity.device_seed.bytes))
    #expect(Hex.encode(try TLSIdentity(device).certificateDER) == vectors.identity.certificate.text)
  }

  @Test("a join code is the same both ways")
  func joinCode() throws {
    let expected = vectors.identity
    let inviter = try #require(PublicKey(expected.device_key.bytes))
    let code = JoinCode(
      fleet: try fleet, invitation: InvitationID(inviter: inviter, serial: expected.join.serial),
      secret: try #require(InvitationSecret(expected.secret.bytes)), expires: expected.join.expires,
      addresses: expected.join.addresses.map { Text($0) })
    #expect(try code.encode() == expected.join_code)
    #expect(try JoinCode.parse(expected.join_code) == code)
  }

  @Test("statements verify, say the same, and are made again byte for byte")
  func statements() throws {
    #expect(vectors.statements.count == 8)
    for expected in vectors.statements {
      let statement = try StatementVerifier(fleet: try fleet).verify(expected.encoded.bytes)
      #expect(statement.id.text == expected.id.text)
      #expect(statement.sequence == expected.sequence)
      #expect(statement.body.kind == expected.kind)
      let signer = StatementSigner(fleet: try fleet, key: try #require(SigningKey(seed: expected.seed.bytes)))
      let previous = try expected.previous.map { bytes in
        try #require(vectors.statements.first { $0.id.text == bytes.text })
      }
      let made = try signer.sign(
        statement.body, after: previous.map { try StatementVerifier(fleet: fleet).verify($0.encoded.bytes) })
      #expect(Hex.encode(made.encoded) == expected.encoded.text)
    }
  }

  @Test("statements mean what the outside peer put into them")
  func bodies() throws {
    let bodies = try vectors.statements.map { try StatementVerifier(fleet: try fleet).verify($0.encoded.bytes).body }
    let expected = vectors.identity
    let device = try #require(PublicKey(expected.device_key.bytes))
    let profile = try #require(
      ValueMap([
        .init(key: "agency", value: .string("Galápagos")), .init(key: "zone", value: .string("N")),
      ]))
    let membership = try #require(Digest(text: vectors.statements[1].id.text))
    #expect(
      bodies == [
        .genesis(.init(fleetName: "North")),
        .membership(.init(device: device, user: "anna", label: "bridge", role: "admin", profile: profile)),
        .replica(
          .init(
            replica: try #require(ReplicaID(expected.replica.bytes)),
            nonce: try #require(UUIDValue(expected.nonce.bytes)), membership: membership)),
        .grant(.init(subject: .everyone, level: .write, pattern: "*")),
        .grant(.init(subject: .device(device), level: .manage, pattern: "agency=*")),
        .grant(.init(subject: .user("anna"), level: .carry, pattern: "x")),
        .grant(.init(subject: .role("officer"), level: .none, pattern: "x")),
        .rule(.init(key: "agency")),
      ])
  }

  @Test("runs decode, hash, verify and are encoded again byte for byte", arguments: 0..<7)
  func runs(index: Int) throws {
    #expect(vectors.runs.count == 7)
    let expected = vectors.runs[index]
    let headersOnly = Set(expected.headers_only)
    let partition = PartitionID(try vectors.identity.partition.digest)
    let decoded = try RunCodec.decode(
      expected.encoded.bytes[...], fleet: try fleet, partition: partition,
      form: headersOnly.isEmpty ? .whole : .withHeadersOnly, hash: SHA256.hash)
    #expect(decoded.hashes.map(\.text) == expected.hashes.map(\.text))
    #expect(
      decoded.changes.map { $0.header.keyHashes.map { Hex.encode($0.bytes) } }
        == expected.key_hashes.map { $0.map(\.text) })
    #expect(decoded.changes.map { Int($0.header.payloadByteCount) } == expected.payload_counts)
    let author = try #require(PublicKey(vectors.identity.device_key.bytes))
    try decoded.verifySignature(of: author, Ed25519.verify)
    let context = try ContextCodec.decode(expected.context.bytes[...], base: VersionVector())
    #expect(Hex.encode(ContextCodec.encode(context, base: VersionVector())) == expected.context.text)
    let run = try decoded.run(context: context, SHA256.hash)
    #expect(run.record.signedBytes == decoded.signatureMessage)
    #expect(Hex.encode(RunCodec.encode(run, headersOnly: headersOnly)) == expected.encoded.text)
  }

  @Test("holdings verify and are made again byte for byte")
  func holdings() throws {
    let device = try #require(SigningKey(seed: vectors.identity.device_seed.bytes))
    let decoded = try vectors.records.holdings.map { try HoldingsCodec.decode($0.bytes[...]) }
    for (signed, expected) in zip(decoded, vectors.records.holdings) {
      #expect(signed.isSigned(Ed25519.verify))
      let again = SignedHoldings(signed.holdings, signature: device.sign(HoldingsCodec.signedBytes(signed.holdings)))
      #expect(Hex.encode(HoldingsCodec.encode(again)) == expected.text)
    }
    let replica = try #require(ReplicaID(vectors.identity.replica.bytes))
    #expect(decoded.map(\.holdings.kind) == [.received, .accepted])
    #expect(decoded.map(\.holdings.ownLast) == [nil, Holdings.OwnLast(replica: replica, sequence: 4)])
  }

  @Test("a bundle is understood and made again byte for byte; what is in it holds")
  func bundle() throws {
    let expected = vectors.records.bundle
    let bundle = try BundleCodec.decode(expected.bytes[...])
    #expect(Hex.encode(BundleCodec.encode(bundle)) == expected.text)
    #expect(bundle.fleet == (try fleet))
    for statement in bundle.statements {
      #expect(throws: Never.self) { try StatementVerifier(fleet: try fleet).verify(Array(statement)) }
    }
    #expect(bundle.partitions.map(\.name.text.string) == ["a", vectors.identity.partition_name])
    let entry = try #require(bundle.partitions.last?.runs.first)
    let partition = PartitionID(try vectors.identity.partition.digest)
    let run = try RunCodec.decode(entry.encoded, fleet: try fleet, partition: partition, hash: SHA256.hash)
    let scan = try RunCodec.scanApart(
      try #require(entry.payload), of: run.changes[0].header, at: Dot(replica: run.chain.replica, sequence: 1),
      partition: partition, hash: SHA256.hash)
    #expect(scan.documents.count == 1)
  }

  @Test("the pieces of a blob give its list hash")
  func listHash() throws {
    let pieces = try vectors.records.pieces.map { try $0.digest }
    #expect(BlobReference.listHash(ofPieces: pieces, SHA256.hash).text == vectors.records.list_hash.text)
  }
}
