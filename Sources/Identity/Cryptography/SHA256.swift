import COpenSSL
import CSodium
import Replication

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// SHA-256 (FIPS 180-4), the hash function of the protocol.
package enum SHA256 {
  /// Callable from any thread; about 5 million hashes a second of 300 bytes each.
  package static let hash: HashFunction = { bytes in
    withDigestBuffer { buffer in
      // libsodium's own SHA-256 is a quarter as fast but cannot fail, which keeps hashing a total function.
      if !ThreadContext.hash(bytes, into: buffer) {
        crypto_hash_sha256(buffer, bytes.baseAddress, UInt64(bytes.count))
      }
    }
  }

  package static func hash(_ bytes: [UInt8]) -> Digest { bytes.withUnsafeBytes(hash) }

  /// Of the library that hashes, as it is linked.
  package static var libraryVersion: String { String(cString: OpenSSL_version(OPENSSL_VERSION)) }
}

/// One OpenSSL context per thread, since making one costs as much as hashing 300 bytes with it. The digest is fetched
/// once per process: looking it up by name at each use halves the speed.
///
/// `@unchecked Sendable`: OpenSSL's fetched digest is immutable and counted; the thread key is a number.
private struct ThreadContext: @unchecked Sendable {
  let digest: OpaquePointer
  let key: pthread_key_t

  static let shared: ThreadContext? = {
    guard seamesh_openssl_prepare() == 1 else { return nil }
    var key = pthread_key_t()
    // The key's destructor frees a context with its thread.
    guard pthread_key_create(&key, { EVP_MD_CTX_free(OpaquePointer($0)) }) == 0,
      let digest = EVP_MD_fetch(nil, "SHA256", nil)
    else { return nil }
    return ThreadContext(digest: digest, key: key)
  }()

  /// False where OpenSSL could not: no memory, or no provider of SHA-256.
  static func hash(_ bytes: UnsafeRawBufferPointer, into digest: UnsafeMutablePointer<UInt8>) -> Bool {
    guard let context = shared?.ofThisThread() else { return false }
    return EVP_DigestInit_ex2(context, nil, nil) == 1
      && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
      && EVP_DigestFinal_ex(context, digest, nil) == 1
  }

  private func ofThisThread() -> OpaquePointer? {
    if let known = pthread_getspecific(key) { return OpaquePointer(known) }
    guard let made = EVP_MD_CTX_new() else { return nil }
    if EVP_DigestInit_ex2(made, digest, nil) == 1, pthread_setspecific(key, UnsafeRawPointer(made)) == 0 { return made }
    EVP_MD_CTX_free(made)
    return nil
  }
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
