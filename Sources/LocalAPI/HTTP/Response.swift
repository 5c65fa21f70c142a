import Replication

struct Header: Sendable, Equatable {
  let name: String
  let value: String
  init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
}

enum MediaType: String, Sendable {
  case json = "application/json"
  case mergePatch = "application/merge-patch+json"
  case problem = "application/problem+json"
  case lines = "application/x-ndjson"
  case events = "text/event-stream"
  case metrics = "text/plain; version=0.0.4; charset=utf-8"
}

/// What a streaming answer gives when it is asked for more.
enum StreamChunk {
  case bytes([UInt8])
  /// Nothing yet; ask again.
  case waiting
  case end
  /// The stream broke after its headers had gone: the connection is cut so that the client sees it is not whole.
  case broken
}

/// Bytes made while they are sent. Used by one connection's thread at a time.
protocol ResponseStream: AnyObject {
  /// Blocks for at most ``ServerLimit/streamPollMilliseconds``.
  func next() -> StreamChunk
  /// Called once, whether the stream ended or its client left.
  func close()
}

struct Response {
  enum Body {
    case bytes([UInt8])
    case stream(any ResponseStream)
  }

  var status: Int
  var headers: [Header]
  var body: Body

  init(status: Int = 200, type: MediaType?, headers: [Header] = [], body: Body) {
    (self.status, self.body) = (status, body)
    self.headers = headers
    if let type { self.headers.append(Header("Content-Type", type.rawValue)) }
    // What a node answers is true for the moment, and is nobody else's to keep.
    self.headers += [Header("Cache-Control", "no-store"), Header("X-Content-Type-Options", "nosniff")]
  }

  static func json(_ value: Value, status: Int = 200, type: MediaType = .json) -> Response {
    Response(status: status, type: type, body: .bytes(JSON.render(value) + [UInt8(ascii: "\n")]))
  }

  static func stream(_ stream: any ResponseStream, type: MediaType) -> Response {
    Response(type: type, body: .stream(stream))
  }

  func with(_ name: String, _ value: String) -> Response {
    var response = self
    response.headers.append(Header(name, value))
    return response
  }
}
