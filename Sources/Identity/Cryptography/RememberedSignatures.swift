import Replication
import Synchronization

/// Signatures that were found good lately. Several peers pass on the same run with the same bytes, and a check costs some
/// fifty times as much as a look at what is remembered.
///
/// One that does not hold is never remembered, and what is remembered is a SHA-256 over key, signature and message: whoever
/// would have another message taken for it has to break that.
package final class RememberedSignatures: Sendable {
  package typealias Check = @Sendable (Signature, [UInt8], PublicKey) -> Bool

  private struct Memory {
    var known: Set<Digest> = []
    /// In the order in which they came, around and around.
    var ring: [Digest] = []
    var next = 0

    mutating func insert(_ digest: Digest, limit: Int) {
      guard known.insert(digest).inserted else { return }
      guard ring.count == limit else { return ring.append(digest) }
      known.remove(ring[next])
      ring[next] = digest
      next = (next + 1) % limit
    }
  }

  /// Copies of a run come within seconds of one another: a hundred kilobytes hold those of ten seconds in a busy fleet.
  package static let limit = 1_024

  private let limit: Int
  private let check: Check
  private let memory = Mutex(Memory())

  package init(limit: Int = RememberedSignatures.limit, check: @escaping Check = Ed25519.verify) {
    precondition(limit > 0, "a memory of nothing")
    (self.limit, self.check) = (limit, check)
  }

  /// Whether the signature holds. Callable from any thread.
  package func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool {
    let digest = SHA256.hash(key.bytes + signature.bytes + message)
    if memory.withLock({ $0.known.contains(digest) }) { return true }
    guard check(signature, message, key) else { return false }
    memory.withLock { $0.insert(digest, limit: limit) }
    return true
  }
}
