import CSodium
import Replication

/// SHA-256 over bytes that come in pieces.
package struct SHA256Stream: ~Copyable {
  private var state = crypto_hash_sha256_state()

  package init() { crypto_hash_sha256_init(&state) }

  package mutating func update(_ bytes: [UInt8]) { crypto_hash_sha256_update(&state, bytes, UInt64(bytes.count)) }

  package consuming func finish() -> Digest { withDigestBuffer { crypto_hash_sha256_final(&state, $0) } }
}
