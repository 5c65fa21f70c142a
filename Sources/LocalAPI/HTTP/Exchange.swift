import Replication
import Seamesh

/// One request on its way in: headers, then body, then answer. Used by its connection's thread alone.
///
/// `fresh` → `collecting` or `discarding` → `answered`.
final class Exchange {
  enum Phase {
    case fresh
    case collecting(Match, Request)
    /// The answer is known, and waits until the client has sent what it wanted to send.
    case discarding(Problem, dropped: Int64)
    case answered
  }

  enum Step {
    case proceed
    case answer(Response)
    case cut
  }

  let rawTarget: String
  private let service: RequestService
  private var phase = Phase.fresh
  private var body: [UInt8] = []
  private let startedAt = monotonicMilliseconds()

  init(rawTarget: String, service: RequestService) { (self.rawTarget, self.service) = (rawTarget, service) }

  deinit { service.budget.release(body.count) }

  /// Headers are in.
  func begin(method: String, headers: HeaderList, socket: Int32) -> Step {
    let verdict = service.connections.begun(socket)
    do throws(Problem) {
      if verdict == .refuse {
        throw Problem(.busy, "so many requests are under way at once; send this one again")
          .with("Retry-After", "1").with("Connection", "close")
      }
      try checkFraming(headers)
      try checkSize(headers)
      try service.admission.check(headers, socket: socket)
    } catch {
      phase = .answered
      return .answer(error.response)
    }
    do throws(Problem) {
      let target = try RequestTarget(raw: rawTarget)
      let match = try service.router.match(method: method, target: target)
      try checkBody(match.route, headers)
      let request = Request(
        channel: service.admission.channel, target: target, parameters: match.parameters, headers: headers, body: [],
        contentType: mediaType(headers), socket: socket)
      phase = .collecting(match, request)
      return .proceed
    } catch {
      return refuse(error, headers)
    }
  }

  /// Some of the body is in.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Step {
    guard monotonicMilliseconds() - startedAt < service.patience.requestMilliseconds else { return .cut }
    switch phase {
    case .collecting(let match, _):
      let limit = match.route.body.byteLimit
      if body.count + bytes.count > limit {
        discard(.limit(.tooLarge, "the body of this request", limit, unit: "bytes"))
      } else if !service.budget.reserve(bytes.count) {
        discard(.tooManyAtOnce)
      } else {
        body.append(contentsOf: bytes)
      }
      return .proceed
    case .discarding(let problem, let dropped):
      let dropped = dropped + Int64(bytes.count)
      guard dropped <= ServerLimit.discardedBodyBytes else { return .cut }
      phase = .discarding(problem, dropped: dropped)
      return .proceed
    case .fresh, .answered: return .cut
    }
  }

  /// The body is whole.
  func finish() -> Step {
    defer { phase = .answered }
    switch phase {
    case .collecting(let match, let request):
      return .answer(service.answer(match.route, request.with(body: body)))
    case .discarding(let problem, _): return .answer(problem.response)
    case .fresh, .answered: return .cut
    }
  }

  var isFresh: Bool { if case .fresh = phase { true } else { false } }

  private func discard(_ problem: Problem) {
    service.budget.release(body.count)
    body = []
    phase = .discarding(problem, dropped: 0)
  }

  /// A client that waits for `100 Continue` is told at once; so is one that announces more than will be read.
  private func refuse(_ problem: Problem, _ headers: HeaderList) -> Step {
    let announced = headers["content-length"].flatMap { Int64($0) } ?? 0
    guard headers["expect"] == nil, announced <= ServerLimit.discardedBodyBytes else {
      phase = .answered
      return .answer(problem.with("Connection", "close").response)
    }
    phase = .discarding(problem, dropped: 0)
    return .proceed
  }

  /// Where headers disagree on where the body ends, what follows it could be taken for another request: the connection ends
  /// with the answer (RFC 9112, sections 6.1 and 6.3).
  private func checkFraming(_ headers: HeaderList) throws(Problem) {
    let (lengths, encodings) = (headers.all("content-length").count, headers.all("transfer-encoding"))
    guard encodings.isEmpty || encodings.count == 1 && encodings[0].lowercased() == "chunked" else {
      throw Problem(.badRequest, "the only Transfer-Encoding here is chunked").with("Connection", "close")
    }
    guard lengths + encodings.count > 1 else { return }
    let sentence = "send one Content-Length or one Transfer-Encoding: with more, the end of the body is not certain"
    throw Problem(.badRequest, sentence).with("Connection", "close")
  }

  private func checkSize(_ headers: HeaderList) throws(Problem) {
    guard rawTarget.utf8.count <= ServerLimit.targetBytes else {
      throw .limit(
        .targetTooLong, "the request target (shorten the filter or the names in it)", ServerLimit.targetBytes,
        unit: "bytes"
      ).with(
        "Connection", "close")
    }
    let byteCount = headers.entries.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    guard byteCount <= ServerLimit.headerBytes else {
      throw .limit(.headersTooLarge, "the headers", ServerLimit.headerBytes, unit: "bytes").with("Connection", "close")
    }
  }

  private func checkBody(_ route: Route, _ headers: HeaderList) throws(Problem) {
    guard headers.all("content-encoding").allSatisfy({ $0.lowercased() == "identity" }) else {
      throw Problem(.unsupportedMediaType, "bodies are taken as they are: send it without a Content-Encoding")
        .with("Accept-Encoding", "identity")
    }
    let length = headers["content-length"].flatMap { Int64($0) } ?? 0
    guard length <= Int64(route.body.byteLimit) else {
      throw .limit(.tooLarge, "the body of this request", route.body.byteLimit, unit: "bytes")
    }
    let types = route.body.mediaTypes
    guard !types.isEmpty else { return }
    guard let type = mediaType(headers), types.contains(type) else {
      let names = types.map(\.rawValue).joined(separator: " or ")
      throw Problem(.unsupportedMediaType, "send the header Content-Type: \(names)").with("Accept", names)
    }
  }
}

extension Request {
  fileprivate func with(body: [UInt8]) -> Request {
    Request(
      channel: channel, target: target, parameters: parameters, headers: headers, body: body,
      contentType: contentType, socket: socket)
  }
}

/// The media type without its parameters; nil for one that no route takes, or another charset than UTF-8.
private func mediaType(_ headers: HeaderList) -> MediaType? {
  let values = headers.all("content-type")
  guard values.count == 1, let value = values.first?.lowercased() else { return nil }
  let parts = value.split(separator: ";").map { $0.drop { $0 == " " } }
  let isUTF8 = parts.dropFirst().allSatisfy { $0 == "charset=utf-8" || $0 == "charset=\"utf-8\"" }
  return isUTF8 ? parts.first.flatMap { MediaType(rawValue: String($0)) } : nil
}
