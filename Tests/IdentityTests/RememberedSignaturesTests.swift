import Replication
import Synchronization
import Testing

@testable import Identity

@Suite struct RememberedSignaturesTests {
  private final class Checks: Sendable {
    let count = Mutex(0)
    func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool {
      count.withLock { $0 += 1 }
      return Ed25519.verify(signature, message, key)
    }
    var sinceLast: Int {
      count.withLock { count in
        defer { count = 0 }
        return count
      }
    }
  }

  private let key = SigningKey()
  private let other = SigningKey()

  @Test("a signature that held is not checked again, and no other key, message or signature passes for it")
  func once() {
    let checks = Checks()
    let remembered = RememberedSignatures(check: checks.verify)
    let (message, another): ([UInt8], [UInt8]) = ([1, 2, 3], [1, 2, 4])
    let signature = key.sign(message)
    for _ in 0..<3 { #expect(remembered.verify(signature, message, key.publicKey)) }
    #expect(checks.sinceLast == 1)
    #expect(!remembered.verify(signature, another, key.publicKey))
    #expect(!remembered.verify(signature, message, other.publicKey))
    #expect(!remembered.verify(key.sign(another), message, key.publicKey))
    #expect(checks.sinceLast == 3)
  }

  @Test("a signature that did not hold is checked every time")
  func neverBad() {
    let checks = Checks()
    let remembered = RememberedSignatures(check: checks.verify)
    let signature = other.sign([1])
    for _ in 0..<3 { #expect(!remembered.verify(signature, [1], key.publicKey)) }
    #expect(checks.sinceLast == 3)
  }

  @Test("of more signatures than there is room for the oldest are checked again")
  func bounded() {
    let checks = Checks()
    let remembered = RememberedSignatures(limit: 2, check: checks.verify)
    func verify(_ number: UInt8) { #expect(remembered.verify(key.sign([number]), [number], key.publicKey)) }
    for number: UInt8 in [1, 2, 3, 4] { verify(number) }
    _ = checks.sinceLast
    for number: UInt8 in [3, 4] { verify(number) }
    #expect(checks.sinceLast == 0)
    verify(1)
    #expect(checks.sinceLast == 1)
    verify(3)
    #expect(checks.sinceLast == 1, "the oldest gave way")
  }
}
