import Replication

/// One request that is answered: the table of these is the router, and the description in `/v1/openapi.json`.
struct Route: Sendable {
  enum Method: String, Sendable, CaseIterable {
    case get = "GET", put = "PUT", post = "POST", patch = "PATCH", delete = "DELETE"
  }

  enum Body: Sendable {
    case none
    /// An object; `members` where they are fixed.
    case json(byteLimit: Int, members: [String] = [])
    case patch
    case lines

    var byteLimit: Int {
      switch self {
      case .none: 0
      case .json(let limit, _): limit
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
    enum Kind: Sendable { case flag, count, json, text }

    let name: String
    let meaning: String
    let kind: Kind

    static func flag(_ name: String, _ meaning: String) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, kind: .flag)
    }
    static func count(_ name: String, _ meaning: String) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, kind: .count)
    }
    static func text(_ name: String, _ meaning: String) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, kind: .text)
    }
    static func json(_ name: String, _ meaning: String) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, kind: .json)
    }
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
  /// Refusals that belong to what this request does; any may be refused for reasons of its own form or of the node.
  var refusals: [Problem.Kind] = []
  var unixSocketOnly = false
  let answer: @Sendable (Request, Surroundings) throws -> Response

  var segments: [Substring] { template.dropFirst().split(separator: "/") }

  /// Path parameters in order.
  var parameters: [String] {
    segments.filter { $0.hasPrefix("{") }.map { String($0.dropFirst().dropLast()) }
  }
}
