import Replication
import Testing

@testable import Identity

@Suite struct SigningKeyTests {
  /// RFC 8032 §7.1, tests 1, 2, 3 and SHA(abc).
  static let vectors: [(seed: String, key: String, message: String, signature: String)] = [
    (
      "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
      """
      e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b\
      d25bf5f0595bbe24655141438e7a100b
      """
    ),
    (
      "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
      """
      92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c\
      387b2eaeb4302aeeb00d291612bb0c00
      """
    ),
    (
      "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
      "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
      """
      6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659\
      4a7c15e9716ed28dc027beceea1ec40a
      """
    ),
    (
      "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
      "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
      """
      ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
      454d4423643ce80e2a9ac94fa54ca49f
      """,
      """
      dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030\
      3dca179c138ac17ad9bef1177331a704
      """
    ),
  ]

  @Test("the vectors of RFC 8032 give their keys and signatures", arguments: vectors)
  func publishedVectors(seed: String, key: String, message: String, signature: String) throws {
    let pair = try #require(SigningKey(seed: try hex(seed)))
    #expect(Hex.encode(pair.publicKey.bytes) == key)
    let made = pair.sign(try hex(message))
    #expect(Hex.encode(made.bytes) == signature)
    #expect(Ed25519.verify(made, try hex(message), pair.publicKey))
  }

  @Test("a signature with any bit turned is refused, and so is one over another message or by another key")
  func mutations() throws {
    let pair = try Fixture.key(3)
    let message = Array("boarding report".utf8)
    let signature = pair.sign(message)
    for bit in 0..<(Signature.byteCount * 8) {
      var bytes = signature.bytes
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!Ed25519.verify(try #require(Signature(bytes)), message, pair.publicKey), "bit \(bit)")
    }
    #expect(!Ed25519.verify(signature, message + [0], pair.publicKey))
    #expect(!Ed25519.verify(signature, message, try Fixture.key(4).publicKey))
  }

  @Test("keys of small order are refused, whatever they sign")
  func smallOrder() throws {
    let identity = try #require(PublicKey([1] + [UInt8](repeating: 0, count: 31)))
    let signature = try #require(Signature([1] + [UInt8](repeating: 0, count: 63)))
    #expect(!Ed25519.verify(signature, [], identity))
  }

  @Test("a seed must have 32 bytes", arguments: [0, 31, 33, 64])
  func seedLength(count: Int) { #expect(SigningKey(seed: [UInt8](repeating: 1, count: count)) == nil) }

  @Test("the seed makes the same key again, and fresh keys differ")
  func seeds() throws {
    let key = SigningKey()
    #expect(SigningKey(seed: key.seed.copy())?.publicKey == key.publicKey)
    #expect(SigningKey().publicKey != key.publicKey)
    let repeatable = SigningKey(random: Fixture.randomSource(seed: 5))
    #expect(repeatable.publicKey == SigningKey(random: Fixture.randomSource(seed: 5)).publicKey)
  }

  @Test("ids are the tagged hash of the key, and their text form reads back")
  func identifiers() throws {
    let key = try Fixture.key(9).publicKey
    let device = DeviceID(key)
    #expect(device.digest == SHA256.hash(Array("seamesh/1 device".utf8) + key.bytes))
    #expect(FleetID(root: key).digest == SHA256.hash(Array("seamesh/1 fleet\0".utf8) + key.bytes))
    #expect(device.text.count == 64)
    #expect(device.text.hasPrefix(device.shortText) && device.shortText.count == 8)
    #expect(DeviceID(text: device.text.uppercased()) == device)
    #expect(DeviceID(text: device.shortText) == nil)
    #expect(DeviceID(text: device.text.dropLast() + "g") == nil)
    #expect(FleetID(text: FleetID(root: key).text) == FleetID(root: key))
    let replica = ReplicaID(high: 0x0123_4567_89ab_cdef, low: 1)
    #expect(replica.text == "0123456789abcdef0000000000000001")
    #expect(ReplicaID(text: replica.text) == replica)
  }
}
