import CCurl
import Glibc
import LocalAPI
import Replication
import Seamesh
import Wire

/// Speaks HTTP with the node that runs on a data directory, over its Unix socket. One connection, kept open.
final class NodeClient {
  static let connectMilliseconds = 5_000
  /// Answers that are held as a whole.
  static let answerBytes = 1 << 30

  private let directory: String
  private let isDefaultDirectory: Bool
  private let handle: CurlHandle

  init(directory: String, isDefaultDirectory: Bool = false) throws(Failure) {
    (self.directory, self.isDefaultDirectory) = (directory, isDefaultDirectory)
    guard let handle = CurlHandle() else { throw Failure(.failed, "libcurl could not be started") }
    self.handle = handle
    let socket = UnixSocketPath.resolve(directory: directory)
    seamesh_curl_set_string(handle.curl, CURLOPT_UNIX_SOCKET_PATH, socket)
    seamesh_curl_set_long(handle.curl, CURLOPT_NOSIGNAL, 1)
    seamesh_curl_set_long(handle.curl, CURLOPT_PATH_AS_IS, 1)
    seamesh_curl_set_long(handle.curl, CURLOPT_CONNECTTIMEOUT_MS, NodeClient.connectMilliseconds)
    seamesh_curl_set_string(handle.curl, CURLOPT_PROXY, "")
  }

  struct Request {
    var method = "GET"
    /// Percent-encoded, with its query.
    var target: String
    var body: [UInt8]?
    var contentType = "application/json"
    var headers: [String] = []
    /// All that the node may object to stands on the command line: an objection is a mistake of usage.
    var isTyped = false
  }

  /// The whole answer. A refusal is thrown with the node's own words.
  func ask(_ request: Request) throws(Failure) -> Answer {
    var body: [UInt8] = []
    let etag = try stream(request) { piece in
      body += piece
      return body.count <= NodeClient.answerBytes
    }
    return Answer(body: body, etag: etag)
  }

  /// Hands over the answer's body while it comes; `receive` answers false to stop. So does `isWanted`, which is asked about once
  /// a second also while nothing comes. Answers the ETag.
  @discardableResult func stream(
    _ request: Request, isWanted: @escaping () -> Bool = { true },
    receive: @escaping (UnsafeRawBufferPointer) -> Bool
  ) throws(Failure) -> String? {
    let receiver = Receiver(handle.curl, isTyped: request.isTyped, isWanted: isWanted, receive)
    let code = perform(request, receiver)
    guard code == CURLE_OK || receiver.stopped else { throw failure(code) }
    if let refusal = receiver.refusal { throw refusal }
    return receiver.etag
  }

  private func perform(_ request: Request, _ receiver: Receiver) -> CURLcode {
    let curl = handle.curl
    var lines = request.headers
    if request.body != nil { lines.append("Content-Type: \(request.contentType)") }
    // The node's limits are known here: no need to ask for leave before sending.
    lines.append("Expect:")
    let list = lines.reduce(nil) { curl_slist_append($0, $1) }
    defer { curl_slist_free_all(list) }
    seamesh_curl_set_string(curl, CURLOPT_URL, "http://localhost" + request.target)
    seamesh_curl_set_string(curl, CURLOPT_CUSTOMREQUEST, request.method)
    seamesh_curl_set_pointer(curl, CURLOPT_HTTPHEADER, list)
    let context = Unmanaged.passUnretained(receiver).toOpaque()
    seamesh_curl_set_receiver(curl, CURLOPT_WRITEFUNCTION, receiveBody)
    seamesh_curl_set_pointer(curl, CURLOPT_WRITEDATA, context)
    seamesh_curl_set_receiver(curl, CURLOPT_HEADERFUNCTION, receiveHeader)
    seamesh_curl_set_pointer(curl, CURLOPT_HEADERDATA, context)
    seamesh_curl_set_long(curl, CURLOPT_NOPROGRESS, 0)
    seamesh_curl_set_progress(curl, CURLOPT_XFERINFOFUNCTION, goOn)
    seamesh_curl_set_pointer(curl, CURLOPT_XFERINFODATA, context)
    var body = request.body ?? []
    return withExtendedLifetime(receiver) {
      body.withUnsafeMutableBytes { bytes in
        if request.body == nil {
          seamesh_curl_set_long(curl, CURLOPT_HTTPGET, 1)
        } else {
          seamesh_curl_set_long(curl, CURLOPT_POST, 1)
          seamesh_curl_set_size(curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count))
          seamesh_curl_set_pointer(curl, CURLOPT_POSTFIELDS, bytes.baseAddress)
        }
        seamesh_curl_set_string(curl, CURLOPT_CUSTOMREQUEST, request.method)
        return curl_easy_perform(curl)
      }
    }
  }

  private func command(_ verb: String) -> String {
    commandLine(verb, directory: directory, isDefault: isDefaultDirectory)
  }

  /// What to do where nobody listens. Where no node lies, `run` would found a fleet beside the one that is meant.
  private var remedy: String {
    guard let refusal = NodeSetup.refusal(of: directory) else { return "; start it with: \(command("run"))" }
    guard refusal.code == .notFound else { return "; \(refusal.message)" }
    return
      ", which holds none: name its directory with --data, or make one with \(command("init")) or \(command("join CODE"))"
  }

  private func failure(_ code: CURLcode) -> Failure {
    var systemError = 0
    seamesh_curl_get_long(handle.curl, CURLINFO_OS_ERRNO, &systemError)
    switch code {
    case CURLE_COULDNT_CONNECT where systemError == Int(EACCES):
      return Failure(.notPermitted, "the node on \(directory) belongs to another user; run this as that user")
    case CURLE_COULDNT_CONNECT:
      return Failure(.unreachable, "no node is running on \(directory)\(remedy)")
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT:
      return Failure(
        .unreachable,
        "the node on \(directory) went away while it answered; \(command("status")) tells whether it is back")
    default:
      return Failure(
        .failed, "the node on \(directory) could not be asked: \(String(cString: curl_easy_strerror(code)))")
    }
  }
}

/// An answer of a node that did what it was asked.
struct Answer {
  let body: [UInt8]
  let etag: String?

  func json() throws(Failure) -> ValueMap {
    do throws(JSONError) {
      return try ExtendedJSON.parseMap(
        body, limits: ExtendedJSON.Limits(byteCount: body.count, depth: 2 * Value.depthLimit), operators: .allowed)
    } catch {
      throw Failure(.failed, "the node's answer cannot be read: \(error.message)")
    }
  }
}

/// Owns a curl handle.
private final class CurlHandle {
  let curl: UnsafeMutableRawPointer

  init?() {
    guard let curl = curl_easy_init() else { return nil }
    self.curl = curl
  }

  deinit { curl_easy_cleanup(curl) }
}

/// What comes back of one request.
private final class Receiver {
  private static let problemBytes = 64 * 1024

  private let curl: UnsafeMutableRawPointer
  private let isTyped: Bool
  private let isWanted: () -> Bool
  private let receive: (UnsafeRawBufferPointer) -> Bool
  private var problem: [UInt8] = []
  var etag: String?
  /// The receiver wanted no more.
  var stopped = false

  init(
    _ curl: UnsafeMutableRawPointer, isTyped: Bool, isWanted: @escaping () -> Bool,
    _ receive: @escaping (UnsafeRawBufferPointer) -> Bool
  ) {
    (self.curl, self.isTyped, self.isWanted, self.receive) = (curl, isTyped, isWanted, receive)
  }

  private var status: Int {
    var status = 0
    seamesh_curl_get_long(curl, CURLINFO_RESPONSE_CODE, &status)
    return status
  }

  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard status >= 300 else {
      stopped = !receive(bytes)
      return !stopped
    }
    problem += bytes.prefix(Receiver.problemBytes - problem.count)
    return true
  }

  func goesOn() -> Bool {
    if !isWanted() { stopped = true }
    return !stopped
  }

  func takeHeader(_ bytes: UnsafeRawBufferPointer) {
    let line = String(decoding: bytes, as: UTF8.self)
    guard line.lowercased().hasPrefix("etag:") else { return }
    etag = line.dropFirst(5).split(separator: "\"", omittingEmptySubsequences: false).dropFirst().first.map(String.init)
  }

  var refusal: Failure? {
    let status = status
    guard status >= 300 else { return nil }
    // Refused before the node has seen it: there is no sentence in the answer.
    var detail =
      status == 414 || status == 431
      ? "the request line is longer than the node takes: shorten the filter or the names in it"
      : "the node answered with status \(status)"
    let map = (try? ExtendedJSON.parseMap(problem)) ?? ValueMap()
    if case .string(let text)? = map["detail"] { detail = text.string }
    return Failure(
      ExitStatus(httpStatus: status, isTyped: isTyped), shown(detail),
      isBusy: map["type"] == .text(Problem.Kind.busy.type))
  }
}

extension ExitStatus {
  /// Of a node's refusal. `isTyped`: what was asked for was written as it is on the command line.
  init(httpStatus: Int, isTyped: Bool) {
    self =
      switch httpStatus {
      case 404: .notFound
      case 401, 403: .notPermitted
      case 400 where isTyped, 422 where isTyped: .usage
      default: .failed
      }
  }
}

private func receiveBody(
  bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  let receiver = Unmanaged<Receiver>.fromOpaque(context).takeUnretainedValue()
  return receiver.take(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
}

private func goOn(
  context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> CInt {
  guard let context else { return 1 }
  return Unmanaged<Receiver>.fromOpaque(context).takeUnretainedValue().goesOn() ? 0 : 1
}

private func receiveHeader(
  bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
  guard let context else { return 0 }
  Unmanaged<Receiver>.fromOpaque(context).takeUnretainedValue()
    .takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
  return size * count
}
