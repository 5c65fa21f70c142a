import Foundation
import Replication
import Testing
import Wire

@testable import Identity

/// The bytes of the outside peer (`Tests/Interop`), which shares no code with this one, made again and read.
@Suite struct InteropVectorTests {
  private let vectors: Vectors

  init() throws {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../Interop/vectors.json")
    vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: path))
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
    let secret = try #require(AdmissionSecret(expected.secret.bytes))
    #expect(Hex.encode(secret.key(in: try fleet).publicKey.bytes) == expected.admission_key.text)
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
    let message = hello.signedBytes(exporter: exporter, isDialer: isDialer, SHA256.hash)
    let signature = try #require(hello.signature)
    #expect(Ed25519.verify(signature, message, hello.device))
    #expect(device.sign(message) == signature)
    #expect(Hex.encode(MessageCodec.encode(.hello(hello))) == encoded.text)
  }

  @Test("a request to join shows the admission secret")
  func joinRequest() throws {
    let encoded = vectors.messages.join_request
    guard case .joinRequest(let request) = try MessageCodec.decode(encoded.bytes[...]) else {
      Issue.record("not a request to join")
      return
    }
    let admission = try #require(AdmissionSecret(vectors.identity.secret.bytes)).key(in: try fleet)
    let message = request.signedBytes(exporter: try vectors.identity.exporter.digest)
    #expect(Ed25519.verify(try #require(request.proof), message, admission.publicKey))
    #expect(Hex.encode(MessageCodec.encode(.joinRequest(request))) == encoded.text)
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
    let profile = try #require(
      ValueMap(expected.join.profile.map { .init(key: Text($0.key), value: .string(Text($0.value))) }))
    let code = JoinCode(
      fleet: try fleet, secret: try #require(AdmissionSecret(expected.secret.bytes)),
      user: Text(expected.join.user), role: Text(expected.join.role), profile: profile,
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
      let made = try signer.sign(statement.body, sequence: expected.sequence)
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
        .genesis(.init(fleetName: "North", admissionKey: try #require(PublicKey(expected.admission_key.bytes)))),
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

  @Test("runs decode, hash, verify and are encoded again byte for byte", arguments: 0..<4)
  func runs(index: Int) throws {
    let expected = vectors.runs[index]
    let partition = PartitionID(try vectors.identity.partition.digest)
    let decoded = try RunCodec.decode(
      expected.encoded.bytes[...], fleet: try fleet, partition: partition, hash: SHA256.hash)
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
    #expect(Hex.encode(RunCodec.encode(run)) == expected.encoded.text)
  }
}

private struct Vectors: Decodable {
  let identity: IdentityVectors
  let statements: [StatementVector]
  let runs: [RunVector]
  let messages: MessageVectors

  struct IdentityVectors: Decodable {
    let root_seed, device_seed, device_key, fleet, device, nonce, replica, partition, secret, admission_key: HexText
    let discovery_tag, exporter, certificate: HexText
    let partition_name, instance, join_code: String
    let join: Join

    struct Join: Decodable {
      let user, role: String
      let profile: [String: String]
      let addresses: [String]
    }
  }

  struct StatementVector: Decodable {
    let seed, id, encoded: HexText
    let sequence: UInt64
    let kind: UInt16
  }

  struct MessageVectors: Decodable {
    let hello, answer, join_request: HexText
    let others: [HexText]
  }

  struct RunVector: Decodable, Sendable {
    let name: String
    let encoded, context: HexText
    let hashes: [HexText]
    let key_hashes: [[HexText]]
    let payload_counts: [Int]
  }
}

/// Bytes in hexadecimal.
private struct HexText: Decodable {
  let text: String
  let bytes: [UInt8]

  init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
    bytes = try hex(text)
  }

  var digest: Digest { get throws { try #require(Digest(bytes)) } }
}
