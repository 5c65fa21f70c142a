import CSodium
import Replication

/// HMAC-SHA-256 (RFC 2104, RFC 4231).
package enum HMAC {
  package static func sha256(key: [UInt8], _ message: [UInt8]) -> Digest {
    var state = crypto_auth_hmacsha256_state()
    defer { sodium_memzero(&state, MemoryLayout.size(ofValue: state)) }
    crypto_auth_hmacsha256_init(&state, key, key.count)
    crypto_auth_hmacsha256_update(&state, message, UInt64(message.count))
    return withDigestBuffer { _ = crypto_auth_hmacsha256_final(&state, $0) }
  }
}
