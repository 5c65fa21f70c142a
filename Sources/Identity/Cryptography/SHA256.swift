import COpenSSL
import CSodium
import Replication

/// SHA-256 (FIPS 180-4), the hash function of the protocol.
package enum SHA256 {
  /// Callable from any thread; about 5 million hashes a second of 300 bytes each.
  package static let hash: HashFunction = { bytes in
    withDigestBuffer { buffer in
      // libsodium's own SHA-256 is half as fast but cannot fail, which keeps hashing a total function.
      if seamesh_sha256(bytes.baseAddress, bytes.count, buffer) != 1 {
        crypto_hash_sha256(buffer, bytes.baseAddress, UInt64(bytes.count))
      }
    }
  }

  package static func hash(_ bytes: [UInt8]) -> Digest { bytes.withUnsafeBytes(hash) }
}

/// Takes the 32 bytes that `fill` writes as a digest, without touching the heap.
func withDigestBuffer(_ fill: (UnsafeMutablePointer<UInt8>) -> Void) -> Digest {
  var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
  withUnsafeMutableBytes(of: &words) { raw in
    if let start = raw.bindMemory(to: UInt8.self).baseAddress { fill(start) }
  }
  return Digest(
    words: (
      UInt64(bigEndian: words.0), UInt64(bigEndian: words.1), UInt64(bigEndian: words.2), UInt64(bigEndian: words.3)
    ))
}
