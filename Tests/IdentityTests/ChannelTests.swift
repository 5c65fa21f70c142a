import Replication
import Testing

@testable import Identity

@Suite struct ChannelSignatureTests {
  private let exporter = SHA256.hash([0xe0])
  private let fields: [UInt8] = [1, 2, 3]

  @Test("a hello's signature holds for its connection, side, fields and device, and for no other")
  func hello() throws {
    let key = try Fixture.key(1)
    let signature = ChannelSignature.hello(by: key, exporter: exporter, side: .dialling, fields: fields)
    func holds(
      _ signature: Signature, by device: PublicKey? = nil, exporter: Digest? = nil, side: ConnectionSide = .dialling,
      fields: [UInt8]? = nil
    ) -> Bool {
      ChannelSignature.isValidHello(
        signature, by: device ?? key.publicKey, exporter: exporter ?? self.exporter, side: side,
        fields: fields ?? self.fields)
    }
    #expect(holds(signature))
    #expect(signature == key.sign(Array("seamesh/1 hello\0".utf8) + exporter.bytes + [0] + fields))
    #expect(!holds(signature, side: .accepting))
    #expect(!holds(signature, exporter: SHA256.hash([0xe1])))
    #expect(!holds(signature, fields: fields + [0]))
    #expect(!holds(signature, by: try Fixture.key(2).publicKey))
  }

  @Test("a join proof shows the secret for one connection, device and request, and is no hello")
  func join() throws {
    let (fleet, device) = (try Fixture.fleet(), try Fixture.key(5).publicKey)
    let admission = try Fixture.secret().key(in: fleet)
    let proof = JoinProof.make(by: admission, exporter: exporter, side: .dialling, device: device, fields: fields)
    func holds(
      _ proof: Signature, admission key: PublicKey? = nil, exporter: Digest? = nil,
      side: ConnectionSide = .dialling, device other: PublicKey? = nil, fields: [UInt8]? = nil
    ) -> Bool {
      JoinProof.verify(
        proof, admission: key ?? admission.publicKey, exporter: exporter ?? self.exporter, side: side,
        device: other ?? device, fields: fields ?? self.fields)
    }
    #expect(holds(proof))
    #expect(proof == admission.sign(Array("seamesh/1 join\0\0".utf8) + exporter.bytes + [0] + device.bytes + fields))
    #expect(!holds(proof, admission: try Fixture.secret(8).key(in: fleet).publicKey))
    #expect(!holds(proof, exporter: .zero))
    #expect(!holds(proof, side: .accepting))
    #expect(!holds(proof, device: try Fixture.key(6).publicKey))
    #expect(!holds(proof, fields: []))
    let hello = ChannelSignature.hello(
      by: admission, exporter: exporter, side: .dialling, fields: device.bytes + fields)
    #expect(!holds(hello))
  }
}

@Suite struct DiscoveryTagTests {
  @Test("the tag is 8 bytes of the keyed hash of the instance name")
  func bytes() throws {
    let fleet = try Fixture.fleet()
    let key = SHA256.hash(Array("seamesh/1 discov".utf8) + fleet.digest.bytes)
    let tag = DiscoveryTag.make(fleet: fleet, instanceName: "k3v9q1")
    #expect(tag == Array(HMAC.sha256(key: key.bytes, Array("k3v9q1".utf8)).bytes.prefix(8)))
    #expect(DiscoveryTag.matches(tag, fleet: fleet, instanceName: "k3v9q1"))
  }

  @Test("another fleet, another name and a tag of another length do not match")
  func mismatch() throws {
    let fleet = try Fixture.fleet(1)
    let tag = DiscoveryTag.make(fleet: fleet, instanceName: "k3v9q1")
    #expect(!DiscoveryTag.matches(tag, fleet: try Fixture.fleet(2), instanceName: "k3v9q1"))
    #expect(!DiscoveryTag.matches(tag, fleet: fleet, instanceName: "k3v9q2"))
    #expect(!DiscoveryTag.matches([], fleet: fleet, instanceName: "k3v9q1"))
    #expect(!DiscoveryTag.matches(Array(tag.dropLast()), fleet: fleet, instanceName: "k3v9q1"))
  }
}
