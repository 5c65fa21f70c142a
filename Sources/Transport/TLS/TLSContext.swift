import COpenSSL
import Replication

/// What this node shows to others: its self-signed Ed25519 certificate and the private key to it.
package struct TLSCredentials: Sendable {
  /// X.509, DER. Dates, names and issuer are never looked at by either side.
  package let certificate: [UInt8]
  /// PKCS#8, DER.
  package let privateKey: [UInt8]

  package init(certificate: [UInt8], privateKey: [UInt8]) {
    (self.certificate, self.privateKey) = (certificate, privateKey)
  }
}

/// A failure of libssl or libcrypto, with the library's own words.
package struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
  package let operation: String
  package let reason: String
  package var description: String { "\(operation): \(reason)" }

  /// Takes the oldest entry of this thread's error queue and empties the queue.
  static func last(_ operation: String) -> TLSError {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0, let reason = ERR_reason_error_string(code) else { return TLSError(operation, "no reason given") }
    return TLSError(operation, String(cString: reason))
  }

  init(_ operation: String, _ reason: String) { (self.operation, self.reason) = (operation, reason) }
}

/// TLS 1.3 between devices that know each other by their keys (security.md §3).
///
/// One version, one group, one signature algorithm, three ciphers: nothing is left to negotiate downwards (W6), and the
/// ClientHello stays small. Neither tickets nor early data, so that every session proves the key anew. The peer's
/// certificate only carries its key: who that is, and whether it may talk, the caller decides.
final class TLSContext {
  static let protocolName: [UInt8] = Array("seamesh/1".utf8)
  /// A self-signed Ed25519 certificate takes about 300 bytes; the limit is libssl's for the whole list.
  private static let certificateListByteLimit = 2_048
  /// libssl reads up to this much from the socket at once: + 6–11 % for bulk transfer.
  private static let readBufferByteCount = 128 * 1024

  let handle: OpaquePointer

  init(_ credentials: TLSCredentials) throws(TLSError) {
    guard seamesh_openssl_prepare() == 1 else { throw .last("OPENSSL_init_ssl") }
    ERR_clear_error()
    guard let handle = SSL_CTX_new(TLS_method()) else { throw .last("SSL_CTX_new") }
    self.handle = handle
    try setProtocol()
    try setCredentials(credentials)
    setPeerVerification()
    setBuffers()
  }

  deinit { SSL_CTX_free(handle) }

  private func setProtocol() throws(TLSError) {
    guard seamesh_ssl_ctx_require_tls13(handle) == 1 else { throw .last("TLS 1.3") }
    let ciphers = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
    guard SSL_CTX_set_ciphersuites(handle, ciphers) == 1 else { throw .last("ciphers") }
    guard seamesh_ssl_ctx_set_groups(handle, "X25519") == 1 else { throw .last("group") }
    guard seamesh_ssl_ctx_set_signature_algorithms(handle, "ed25519") == 1 else { throw .last("signature") }
    seamesh_ssl_ctx_set_options(handle)
    guard SSL_CTX_set_num_tickets(handle, 0) == 1 else { throw .last("tickets") }
    seamesh_ssl_ctx_disable_session_cache(handle)
    try setApplicationProtocol()
  }

  private func setApplicationProtocol() throws(TLSError) {
    let offer = [UInt8(TLSContext.protocolName.count)] + TLSContext.protocolName
    guard SSL_CTX_set_alpn_protos(handle, offer, UInt32(offer.count)) == 0 else { throw .last("protocol name") }
    SSL_CTX_set_alpn_select_cb(
      handle,
      { _, out, outLength, offer, offerLength, _ in
        TLSContext.select(out, outLength, UnsafeBufferPointer(start: offer, count: Int(offerLength)))
      }, nil)
  }

  /// Points `out` at our protocol's name inside the client's offer (RFC 7301 §3.1: names with a length byte each).
  private static func select(
    _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ outLength: UnsafeMutablePointer<UInt8>?,
    _ offer: UnsafeBufferPointer<UInt8>
  ) -> Int32 {
    var index = 0
    while index < offer.count {
      let start = index + 1
      let end = start + Int(offer[index])
      guard end <= offer.count else { break }
      if offer[start..<end].elementsEqual(protocolName) {
        out?.pointee = offer.baseAddress?.advanced(by: start)
        outLength?.pointee = offer[index]
        return SSL_TLSEXT_ERR_OK
      }
      index = end
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
  }

  private func setCredentials(_ credentials: TLSCredentials) throws(TLSError) {
    let certificate = credentials.certificate
    guard SSL_CTX_use_certificate_ASN1(handle, Int32(clamping: certificate.count), certificate) == 1 else {
      throw .last("certificate")
    }
    let key = credentials.privateKey.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      return d2i_AutoPrivateKey(nil, &position, bytes.count)
    }
    guard let key else { throw .last("private key") }
    defer { EVP_PKEY_free(key) }
    guard SSL_CTX_use_PrivateKey(handle, key) == 1, SSL_CTX_check_private_key(handle) == 1 else {
      throw .last("private key")
    }
  }

  /// Both sides must show a certificate with an Ed25519 key. libssl checks the proof of possession; chains and dates
  /// are not looked at, because a clock that is wrong must not cut a vessel off (T8).
  private func setPeerVerification() {
    SSL_CTX_set_verify(handle, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    SSL_CTX_set_cert_verify_callback(
      handle, { store, _ in X509_STORE_CTX_get0_cert(store).flatMap(TLSContext.publicKey) == nil ? 0 : 1 }, nil)
    seamesh_ssl_ctx_set_certificate_list_limit(handle, TLSContext.certificateListByteLimit)
  }

  /// The raw key, nil unless it is an Ed25519 one.
  static func publicKey(_ certificate: OpaquePointer) -> PublicKey? {
    guard let key = X509_get0_pubkey(certificate), EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 else { return nil }
    var raw = [UInt8](repeating: 0, count: Digest.byteCount)
    var count = raw.count
    guard EVP_PKEY_get_raw_public_key(key, &raw, &count) == 1, count == raw.count else { return nil }
    return PublicKey(raw)
  }

  private func setBuffers() {
    seamesh_ssl_ctx_set_partial_writes(handle)
    seamesh_ssl_ctx_set_read_ahead(handle)
    SSL_CTX_set_default_read_buffer_len(handle, TLSContext.readBufferByteCount)
  }
}
