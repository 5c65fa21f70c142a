import COpenSSL
import Replication

/// One TLS connection over a non-blocking socket. Confined to the IO thread.
final class TLSSession {
  enum Progress: Equatable {
    case done
    case wantsInput
    case wantsOutput
    case failed(String)
  }

  enum Input: Equatable {
    case bytes(Int)
    case wantsInput
    case wantsOutput
    /// The peer said that it sends no more (`close_notify`).
    case ended
    /// The stream broke off without that.
    case truncated
    /// After a handshake message that no peer of ours sends so often (W11).
    case flooded
    case failed(String)
  }

  enum Output: Equatable {
    case bytes(Int)
    case wantsInput
    case wantsOutput
    case failed(String)
  }

  /// TLS messages that are no data, after the handshake. A peer sends one key update per 64 GiB; a flood of them costs
  /// key derivations.
  private static let handshakeMessageLimit = 256
  /// RFC 8446 §5.5: an AES-GCM key is good for 2^24.5 records, about 388 GiB in full ones; small records count alike.
  private static let recordsPerKey = 1 << 22
  private static let exporterLabel = "EXPORTER-seamesh/1"

  private let ssl: OpaquePointer
  private let handshakeMessages = HandshakeMessageCounter()
  private var recordsWritten = 0

  init(_ context: TLSContext, descriptor: Int32, asClient: Bool) throws(TLSError) {
    ERR_clear_error()
    guard let ssl = SSL_new(context.handle) else { throw .last("SSL_new") }
    guard SSL_set_fd(ssl, descriptor) == 1 else {
      SSL_free(ssl)
      throw .last("SSL_set_fd")
    }
    self.ssl = ssl
    if asClient { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
  }

  deinit { SSL_free(ssl) }

  func handshake() -> Progress {
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    guard result != 1 else {
      handshakeMessages.attach(to: ssl)
      return speaksOurProtocol ? .done : .failed("no common application protocol")
    }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wantsInput
    case SSL_ERROR_WANT_WRITE: return .wantsOutput
    default: return .failed(TLSError.last("handshake").reason)
    }
  }

  private var speaksOurProtocol: Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &length)
    return UnsafeBufferPointer(start: name, count: Int(length)).elementsEqual(TLSContext.protocolName)
  }

  /// The key that the peer proved, and a value that only the two ends of this connection know. Nil before the handshake.
  var peer: (key: PublicKey, exporter: Digest)? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { X509_free(certificate) }
    var exported = [UInt8](repeating: 0, count: Digest.byteCount)
    let label = TLSSession.exporterLabel
    let result = SSL_export_keying_material(ssl, &exported, exported.count, label, label.utf8.count, nil, 0, 0)
    guard result == 1, let key = TLSContext.publicKey(certificate), let exporter = Digest(exported) else { return nil }
    return (key, exporter)
  }

  /// At most one record (16 KiB).
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Input {
    ERR_clear_error()
    var count = 0
    let result = SSL_read_ex(ssl, buffer.baseAddress, buffer.count, &count)
    if handshakeMessages.count > TLSSession.handshakeMessageLimit { return .flooded }
    guard result != 1 else { return .bytes(count) }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wantsInput
    case SSL_ERROR_WANT_WRITE: return .wantsOutput
    case SSL_ERROR_ZERO_RETURN: return .ended
    case SSL_ERROR_SYSCALL: return .truncated
    default:
      let isEnd = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING
      return isEnd ? .truncated : .failed(TLSError.last("read").reason)
    }
  }

  /// After `wants…` the same bytes must come again, at any address, with more behind them if there are more.
  func write(_ bytes: UnsafeRawBufferPointer) -> Output {
    ERR_clear_error()
    var count = 0
    let result = SSL_write_ex(ssl, bytes.baseAddress, bytes.count, &count)
    guard result != 1 else {
      countRecords(count)
      return .bytes(count)
    }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wantsInput
    case SSL_ERROR_WANT_WRITE: return .wantsOutput
    default: return .failed(TLSError.last("write").reason)
    }
  }

  private func countRecords(_ byteCount: Int) {
    recordsWritten += byteCount / Int(SSL3_RT_MAX_PLAIN_LENGTH) + 1
    guard recordsWritten >= TLSSession.recordsPerKey else { return }
    recordsWritten = 0
    renewKey()
  }

  /// The next write goes under a new key, after a message that says so.
  func renewKey() { SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) }

  /// Tells the peer that this is a clean end; once, and after all data was written.
  func sendCloseNotify() -> Progress {
    ERR_clear_error()
    let result = SSL_shutdown(ssl)
    if result >= 0 { return .done }
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: return .wantsInput
    case SSL_ERROR_WANT_WRITE: return .wantsOutput
    default: return .failed(TLSError.last("shutdown").reason)
    }
  }

  /// Bytes that crossed the socket in both directions so far.
  var wireByteCount: UInt64 {
    UInt64(BIO_number_read(SSL_get_rbio(ssl))) + UInt64(BIO_number_written(SSL_get_wbio(ssl)))
  }
}

/// Counts the peer's handshake messages after the handshake. libssl calls back during reads on the IO thread.
private final class HandshakeMessageCounter {
  private(set) var count = 0
  /// libssl's own slot for application data.
  private static let slot: Int32 = 0

  /// The counter must live as long as `ssl`.
  func attach(to ssl: OpaquePointer) {
    SSL_set_ex_data(ssl, HandshakeMessageCounter.slot, Unmanaged.passUnretained(self).toOpaque())
    SSL_set_msg_callback(ssl) { isWritten, _, contentType, _, _, ssl, _ in
      guard isWritten == 0, contentType == SSL3_RT_HANDSHAKE,
        let context = SSL_get_ex_data(ssl, HandshakeMessageCounter.slot)
      else { return }
      Unmanaged<HandshakeMessageCounter>.fromOpaque(context).takeUnretainedValue().count += 1
    }
  }
}
