import Foundation
import Identity
import Replication
import Synchronization
import Testing

@Suite struct SHA256Tests {
  /// FIPS 180-2 appendix B and NIST's short messages.
  static let vectors: [(message: [UInt8], digest: String)] = [
    ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (Array("abc".utf8), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    ([UInt8](repeating: 0x61, count: 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
  ]

  @Test("the published vectors give the published digests", arguments: vectors)
  func publishedVectors(message: [UInt8], digest: String) { #expect(Hex.encode(SHA256.hash(message).bytes) == digest) }

  @Test("an empty buffer without memory hashes like an empty message")
  func emptyBuffer() {
    #expect(SHA256.hash(UnsafeRawBufferPointer(start: nil, count: 0)) == SHA256.hash([]))
  }

  @Test("threads hash at once without disturbing each other")
  func threads() {
    // Large enough that threads meet in the middle of a hash.
    let messages = (1...8).map { [UInt8](repeating: UInt8($0), count: $0 * 16_384) }
    let expected = messages.map(SHA256.hash)
    let wrong = Mutex(0)
    let finished = DispatchGroup()
    for _ in 0..<8 {
      finished.enter()
      Thread.detachNewThread {
        for _ in 0..<10 where messages.map(SHA256.hash) != expected { wrong.withLock { $0 += 1 } }
        finished.leave()
      }
    }
    finished.wait()
    #expect(wrong.withLock { $0 } == 0)
  }

  /// RFC 4231, test cases 1, 2 and 6.
  static let authenticated: [(key: [UInt8], message: String, code: String)] = [
    (
      [UInt8](repeating: 0x0b, count: 20), "Hi There",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    ),
    (
      Array("Jefe".utf8), "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (
      [UInt8](repeating: 0xaa, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
  ]

  @Test("HMAC-SHA-256 gives the codes of RFC 4231", arguments: authenticated)
  func authentication(key: [UInt8], message: String, code: String) {
    #expect(Hex.encode(HMAC.sha256(key: key, Array(message.utf8)).bytes) == code)
  }

  @Test("constant-time comparison agrees with equality")
  func comparison() {
    #expect(isEqualInConstantTime([], []))
    #expect(isEqualInConstantTime([1, 2, 3], [1, 2, 3]))
    #expect(!isEqualInConstantTime([1, 2, 3], [1, 2, 4]))
    #expect(!isEqualInConstantTime([1, 2, 3], [1, 2]))
  }
}
