import Replication

/// One request that is answered: the table of these is the router, and the description in `/v1/openapi.json`.
struct Route: Sendable {
  enum Method: String, Sendable, CaseIterable {
    case get = "GET", put = "PUT", post = "POST", patch = "PATCH", delete = "DELETE"
  }

  enum Body: Sendable {
    case none
    case json(byteLimit: Int)
    case patch
    case lines

    var byteLimit: Int {
      switch self {
      case .none: 0
      case .json(let limit): limit
      case .patch: ServerLimit.documentBodyBytes
      case .lines: ServerLimit.importBodyBytes
      }
    }

    var mediaTypes: [MediaType] {
      switch self {
      case .none: []
      case .json: [.json]
      case .patch: [.mergePatch, .json]
      case .lines: [.lines]
      }
    }
  }

  struct QueryParameter: Sendable {
    let name: String
    let meaning: String
    init(_ name: String, _ meaning: String) { (self.name, self.meaning) = (name, meaning) }
  }

  let method: Method
  /// Segments, those in braces being parameters.
  let template: String
  /// Stable name of the operation.
  let name: String
  let summary: String
  var body = Body.none
  var query: [QueryParameter] = []
  /// Headers of the request that mean something here.
  var headers: [String] = []
  var answers = MediaType.json
  /// Success statuses.
  var statuses = [200]
  var unixSocketOnly = false
  let answer: @Sendable (Request, Surroundings) throws -> Response

  var segments: [Substring] { template.dropFirst().split(separator: "/") }

  /// Path parameters in order.
  var parameters: [String] {
    segments.filter { $0.hasPrefix("{") }.map { String($0.dropFirst().dropLast()) }
  }
}
