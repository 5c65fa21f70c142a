import CSodium
import Replication

/// What lets a device into a fleet: whoever has it can sign memberships, none of which makes an admin.
package struct AdmissionSecret: Redacted, Equatable, Sendable {
  let bytes: SecretBytes

  package static let byteCount = 16

  /// Nil unless there are exactly 16 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == AdmissionSecret.byteCount else { return nil }
    self.bytes = SecretBytes(bytes)
  }

  package init(random: RandomSource = SecureRandom.bytes) {
    let bytes = random(AdmissionSecret.byteCount)
    precondition(bytes.count == AdmissionSecret.byteCount, "a random source gave \(bytes.count) bytes")
    self.bytes = SecretBytes(bytes)
  }

  /// The key pair that the fleet's genesis names: its seed is `H(domain, fleet id, secret)`.
  package func key(in fleet: FleetID) -> SigningKey {
    var input = DomainTag.admission.bytes + fleet.digest.bytes + bytes.copy()
    var seed = SHA256.hash(input).bytes
    defer {
      sodium_memzero(&input, input.count)
      sodium_memzero(&seed, seed.count)
    }
    guard let key = SigningKey(seed: seed) else { preconditionFailure("a digest of \(seed.count) bytes") }
    return key
  }
}
