import Replication
import Testing

@testable import Identity

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
