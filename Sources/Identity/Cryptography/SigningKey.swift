import CSodium
import Replication

/// An Ed25519 key pair (RFC 8032). The secret part is wiped with its last copy and never shown.
package struct SigningKey: Sendable {
  package let publicKey: PublicKey
  /// Seed and public key, 64 bytes, as libsodium keeps them.
  private let secret: SecretBytes

  package static let seedByteCount = 32

  /// Nil unless the seed has exactly 32 bytes.
  package init?(seed: [UInt8]) {
    guard seed.count == SigningKey.seedByteCount else { return nil }
    Sodium.prepare()
    var expanded = [UInt8](repeating: 0, count: Int(crypto_sign_ed25519_SECRETKEYBYTES))
    defer { sodium_memzero(&expanded, expanded.count) }
    publicKey = PublicKey(withDigestBuffer { _ = crypto_sign_ed25519_seed_keypair($0, &expanded, seed) })
    secret = SecretBytes(expanded)
  }

  package init(random: RandomSource = SecureRandom.bytes) {
    var seed = random(SigningKey.seedByteCount)
    defer { sodium_memzero(&seed, seed.count) }
    guard let key = SigningKey(seed: seed) else { preconditionFailure("a random source gave \(seed.count) bytes") }
    self = key
  }

  /// The 32 bytes from which the pair comes: for key files and the TLS identity.
  package var seed: SecretBytes { secret.withBytes { SecretBytes($0.prefix(SigningKey.seedByteCount)) } }

  /// About 40,000 a second on a core. Callable from any thread.
  package func sign(_ message: [UInt8]) -> Signature {
    let signature = secret.withBytes { key -> Signature? in
      guard let key = key.bindMemory(to: UInt8.self).baseAddress else { return nil }
      var bytes = [UInt8](repeating: 0, count: Signature.byteCount)
      crypto_sign_ed25519_detached(&bytes, nil, message, UInt64(message.count), key)
      return Signature(bytes)
    }
    guard let signature else { preconditionFailure("a signing key holds \(secret.count) bytes") }
    return signature
  }
}

extension SigningKey: Redacted {
  /// Names the key by its public part, which is no secret.
  package var description: String { "<SigningKey of \(DeviceID(publicKey).shortText), redacted>" }
}

package enum Ed25519 {
  /// Refuses keys of small order and any but the one canonical form of a signature, as libsodium does.
  ///
  /// About 20,000 a second on a core. Callable from any thread.
  package static func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool {
    Sodium.prepare()
    return crypto_sign_ed25519_verify_detached(signature.bytes, message, UInt64(message.count), key.bytes) == 0
  }
}
