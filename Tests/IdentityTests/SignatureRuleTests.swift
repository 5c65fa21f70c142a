import Replication
import Testing

@testable import Identity

/// Which signatures are accepted is a rule of the protocol: two nodes that disagree on one would disagree on its run.
@Suite("The rule of signatures")
struct SignatureRuleTests {
  @Test(
    "honest and hostile signatures are judged as the protocol says", arguments: try InteropVectors.stored().signatures)
  func verdict(item: InteropVectors.SignatureVector) throws {
    let key = try #require(PublicKey(item.key.bytes))
    let signature = try #require(Signature(item.signature.bytes))
    #expect(Ed25519.verify(signature, item.message.bytes, key) == item.is_accepted)
  }

  @Test("each way to bend a signature is among them")
  func complete() throws {
    let vectors = try InteropVectors.stored().signatures
    #expect(vectors.count { $0.name.hasPrefix("key of small order") } == 14)
    #expect(vectors.count { $0.name.hasPrefix("R of small order") } == 14)
    #expect(Set(vectors.map(\.name)).isSuperset(of: ["honest", "S + L", "S + 2^255"]))
    #expect(vectors.filter(\.is_accepted).map(\.name) == ["honest", "key of mixed order: holds without the cofactor"])
  }
}
