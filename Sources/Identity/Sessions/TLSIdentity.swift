import COpenSSL
import Replication

/// What a node shows in TLS: its device key in a self-signed X.509 certificate (RFC 8410), made anew at each start.
///
/// Peers look at nothing but the key: name, dates and serial number are the same for every node and for ever, so that
/// the certificate tells a port scanner no more than it must and never expires (fault T8).
package struct TLSIdentity: Sendable {
  /// About 220 bytes.
  package let certificateDER: [UInt8]
  /// PKCS #8 (RFC 5958). A copy that nobody wipes: hand it to TLS and drop it.
  package let privateKeyDER: [UInt8]

  package enum Failure: Error, Equatable {
    /// OpenSSL's first queued error code, 0 where it gave none.
    case openSSL(code: UInt)
  }

  package init(_ key: SigningKey) throws(Failure) {
    guard seamesh_openssl_prepare() == 1 else { throw .last() }
    let seed = key.seed
    guard let pair = seed.withBytes({ EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, $0.baseAddress, $0.count) })
    else { throw .last() }
    defer { EVP_PKEY_free(pair) }
    certificateDER = try TLSIdentity.certificate(of: pair)
    privateKeyDER = TLSIdentity.pkcs8Prefix + seed.copy()
  }

  /// RFC 8410 §7: version 0, algorithm 1.3.101.112, an octet string in an octet string; the 32 bytes of the seed follow.
  private static let pkcs8Prefix: [UInt8] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
  ]

  private static func certificate(of pair: OpaquePointer) throws(Failure) -> [UInt8] {
    guard let certificate = X509_new() else { throw .last() }
    defer { X509_free(certificate) }
    guard let name = X509_get_subject_name(certificate),
      X509_set_version(certificate, 2) == 1,
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), 1) == 1,
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, "seamesh", -1, -1, 0) == 1,
      X509_set_issuer_name(certificate, name) == 1,
      // Encoded as RFC 5280 §4.1.2.5 asks, which also names the date that says "no end".
      ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), "19700101000000Z") == 1,
      ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), "99991231235959Z") == 1,
      X509_set_pubkey(certificate, pair) == 1,
      X509_sign(certificate, pair, nil) > 0
    else { throw .last() }
    var encoded: UnsafeMutablePointer<UInt8>?
    let count = i2d_X509(certificate, &encoded)
    guard count > 0, let encoded else { throw .last() }
    defer { CRYPTO_free(encoded, #file, #line) }
    return Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
  }
}

extension TLSIdentity: Redacted {}

extension TLSIdentity.Failure {
  fileprivate static func last() -> TLSIdentity.Failure {
    let code = ERR_get_error()
    ERR_clear_error()
    return .openSSL(code: code)
  }
}

extension PublicKey {
  /// Longest certificate that is looked at; ours have about 220 bytes.
  package static let certificateByteLimit = 4096

  /// The key in an X.509 certificate, or nil unless it is one whole certificate with an Ed25519 key.
  ///
  /// Nothing else in it is looked at: TLS shows that the peer has the private key.
  package init?(certificateDER: [UInt8]) {
    guard !certificateDER.isEmpty, certificateDER.count <= PublicKey.certificateByteLimit else { return nil }
    defer { ERR_clear_error() }
    let certificate = certificateDER.withUnsafeBufferPointer { buffer -> OpaquePointer? in
      var position = buffer.baseAddress
      guard let certificate = d2i_X509(nil, &position, buffer.count) else { return nil }
      if position == buffer.baseAddress?.advanced(by: buffer.count) { return certificate }
      X509_free(certificate)
      return nil
    }
    guard let certificate else { return nil }
    defer { X509_free(certificate) }
    guard let key = X509_get0_pubkey(certificate), EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Digest.byteCount)
    var count = bytes.count
    guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == bytes.count else { return nil }
    self.init(bytes)
  }
}
