import COpenSSL

/// The library that hashes and encrypts, of which a process has one for all who use it.
package enum OpenSSL {
  /// Whoever calls it first decides how it ends, and libcurl and libpq call it, too. With this call before theirs, it frees
  /// nothing in `exit`, where threads that still end free their own parts. Takes about a millisecond, once.
  package static func prepare() { _ = seamesh_openssl_prepare() }
}
