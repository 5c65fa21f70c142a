import CMicrohttpd
import Glibc

/// One listener of libmicrohttpd, each connection on a thread of its own (a node's answers block).
///
/// `@unchecked Sendable`: `daemon` is set once in `init` and stopped once by ``LocalServer``, under its lock.
final class HTTPDaemon: @unchecked Sendable {
  private let daemon: OpaquePointer
  private let service: Unmanaged<RequestService>

  /// Takes `listener`, also when it throws.
  init(listener: Int32, connections: UInt32, service: RequestService) throws(LocalServerError) {
    let retained = Unmanaged.passRetained(service)
    guard
      let daemon = seamesh_http_start(
        listener, connections, service.patience.idleSeconds, ServerLimit.connectionMemoryBytes,
        answerRequest, keepRawTarget, requestCompleted, connectionChanged, retained.toOpaque())
    else {
      retained.release()
      close(listener)
      throw .refusedByLibrary
    }
    (self.daemon, self.service) = (daemon, retained)
  }

  /// Closes the listener and every connection; returns when their threads have ended.
  func stop() {
    MHD_stop_daemon(daemon)
    service.release()
  }
}

/// Called with the request target before anything of it is decoded. The value returned is the request's context.
private func keepRawTarget(
  service: UnsafeMutableRawPointer?, target: UnsafePointer<CChar>?, connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let service, let target else { return nil }
  let exchange = Exchange(
    rawTarget: escaped(target), service: Unmanaged<RequestService>.fromOpaque(service).takeUnretainedValue())
  return Unmanaged.passRetained(exchange).toOpaque()
}

/// With a percent sign before each byte that is not ASCII, so that those which are no UTF-8 are refused where it is decoded: repaired,
/// two targets would name one document.
private func escaped(_ target: UnsafePointer<CChar>) -> String {
  let digits = Array("0123456789ABCDEF".utf8)
  var bytes: [UInt8] = []
  for index in 0..<strlen(target) {
    let byte = UInt8(bitPattern: target[index])
    if byte < 0x80 {
      bytes.append(byte)
    } else {
      bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
  }
  return String(decoding: bytes, as: UTF8.self)
}

private func requestCompleted(
  service: UnsafeMutableRawPointer?, connection: OpaquePointer?,
  context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, reason: MHD_RequestTerminationCode
) {
  guard let exchange = context?.pointee else { return }
  Unmanaged<Exchange>.fromOpaque(exchange).release()
  context?.pointee = nil
  guard let service, let connection else { return }
  Unmanaged<RequestService>.fromOpaque(service).takeUnretainedValue().connections
    .answered(seamesh_http_socket(connection))
}

private func connectionChanged(
  service: UnsafeMutableRawPointer?, connection: OpaquePointer?,
  context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, change: MHD_ConnectionNotificationCode
) {
  guard let service, let connection else { return }
  let connections = Unmanaged<RequestService>.fromOpaque(service).takeUnretainedValue().connections
  let socket = seamesh_http_socket(connection)
  if seamesh_http_begins(change) { connections.opened(socket) } else { connections.closed(socket) }
}

/// Called once with the headers, then with each piece of the body, then once more when the body is whole.
private func answerRequest(
  service: UnsafeMutableRawPointer?, connection: OpaquePointer?, path: UnsafePointer<CChar>?,
  method: UnsafePointer<CChar>?, version: UnsafePointer<CChar>?, bytes: UnsafePointer<CChar>?,
  byteCount: UnsafeMutablePointer<Int>?, context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let connection, let method, let byteCount, let context = context?.pointee else { return .NO }
  let exchange = Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
  let step: Exchange.Step
  if exchange.isFresh {
    step = exchange.begin(
      method: String(cString: method), headers: headers(of: connection), socket: seamesh_http_socket(connection))
  } else if byteCount.pointee > 0 {
    step = exchange.receive(UnsafeRawBufferPointer(start: bytes, count: byteCount.pointee))
    byteCount.pointee = 0
  } else {
    step = exchange.finish()
  }
  return switch step {
  case .proceed: .YES
  case .cut: .NO
  case .answer(let response): queue(response, on: connection)
  }
}

private func headers(of connection: OpaquePointer) -> HeaderList {
  var list = HeaderList()
  withUnsafeMutablePointer(to: &list) {
    _ = MHD_get_connection_values(connection, .HEADER_KIND, appendHeader, $0)
  }
  return list
}

private func appendHeader(
  list: UnsafeMutableRawPointer?, kind: MHD_ValueKind, name: UnsafePointer<CChar>?, value: UnsafePointer<CChar>?
) -> MHD_Result {
  guard let list, let name else { return .NO }
  list.assumingMemoryBound(to: HeaderList.self).pointee
    .append(String(cString: name), value.map { String(cString: $0) } ?? "")
  return .YES
}

private func queue(_ response: Response, on connection: OpaquePointer) -> MHD_Result {
  let made: OpaquePointer?
  switch response.body {
  case .bytes(var bytes):
    made = MHD_create_response_from_buffer(bytes.count, &bytes, .RESPMEM_MUST_COPY)
  case .stream(let stream):
    let context = Unmanaged.passRetained(StreamReader(stream))
    made = MHD_create_response_from_callback(
      UInt64.max /* MHD_SIZE_UNKNOWN */, ServerLimit.pipeChunkBytes, readStream, context.toOpaque(), closeStream)
    if made == nil { closeStream(reader: context.toOpaque()) }
  }
  guard let made else { return .NO }
  defer { MHD_destroy_response(made) }
  for header in response.headers { MHD_add_response_header(made, header.name, header.value) }
  return MHD_queue_response(connection, UInt32(response.status), made)
}

/// A stream with the rest of the chunk that did not fit.
private final class StreamReader {
  let stream: any ResponseStream
  private var rest: ArraySlice<UInt8> = []

  init(_ stream: any ResponseStream) { self.stream = stream }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while rest.isEmpty {
      switch stream.next() {
      case .bytes(let bytes): rest = bytes[...]
      case .waiting: continue
      case .end: return readerEnded
      case .broken: return readerBroken
      }
    }
    let piece = rest.prefix(buffer.count)
    buffer.copyBytes(from: piece)
    rest = rest.dropFirst(piece.count)
    return piece.count
  }
}

// MHD_CONTENT_READER_END_OF_STREAM and …_END_WITH_ERROR, which are casts that Swift does not import.
private let readerEnded = -1
private let readerBroken = -2

private func readStream(
  reader: UnsafeMutableRawPointer?, position: UInt64, buffer: UnsafeMutablePointer<CChar>?, limit: Int
) -> Int {
  guard let reader, let buffer else { return readerBroken }
  return Unmanaged<StreamReader>.fromOpaque(reader).takeUnretainedValue()
    .read(into: UnsafeMutableRawBufferPointer(start: buffer, count: limit))
}

private func closeStream(reader: UnsafeMutableRawPointer?) {
  guard let reader else { return }
  let owned = Unmanaged<StreamReader>.fromOpaque(reader).takeRetainedValue()
  owned.stream.close()
}
