import Replication

/// One request that is answered: the table of these is the router, and the description in `/v1/openapi.json`.
struct Route: Sendable {
  enum Method: String, Sendable, CaseIterable {
    case get = "GET", put = "PUT", post = "POST", patch = "PATCH", delete = "DELETE"
  }

  enum Body: Sendable {
    case none
    case json(byteLimit: Int, valueLimit: Int = ServerLimit.documentValues, Schema)
    /// A merge patch or update operators.
    case patch
    /// JSON on each line.
    case lines(of: Schema)

    var byteLimit: Int {
      switch self {
      case .none: 0
      case .json(let limit, _, _): limit
      case .patch: ServerLimit.documentBodyBytes
      case .lines: ServerLimit.importBodyBytes
      }
    }

    /// Values that are read of it at once: an import's lines are read in parts of so many.
    var valueLimit: Int {
      switch self {
      case .none: 0
      case .json(_, let limit, _): limit
      case .patch, .lines: ServerLimit.documentValues
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
    let schema: Schema
    /// Its text is JSON.
    var isJSON = false

    static func flag(_ name: String, _ meaning: String) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, schema: .oneOf(["true", "false"]))
    }
    static func count(
      _ name: String, from least: Int64 = 0, to greatest: Int64? = nil, _ meaning: String
    ) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, schema: .integer(from: least, to: greatest))
    }
    static func text(_ name: String, _ meaning: String, _ schema: Schema = .string) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, schema: schema)
    }
    static func json(_ name: String, _ meaning: String, _ schema: Schema) -> QueryParameter {
      QueryParameter(name: name, meaning: meaning, schema: schema, isJSON: true)
    }
  }

  struct Header: Sendable {
    let name: String
    let meaning: String
    let schema: Schema

    init(_ name: String, _ meaning: String, _ schema: Schema) {
      (self.name, self.meaning, self.schema) = (name, meaning, schema)
    }
  }

  enum Result: Sendable {
    case json(Schema)
    case lines(of: Schema)
    /// Server-sent events by name, with JSON of that form as their data.
    case events([(name: String, data: Schema)])
    case metrics

    var mediaType: MediaType {
      switch self {
      case .json: .json
      case .lines: .lines
      case .events: .events
      case .metrics: .metrics
      }
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
  var headers: [Header] = []
  /// What it answers where nothing is refused.
  let result: Result
  /// Success statuses.
  var statuses = [200]
  /// Refusals that belong to what this request does; any may be refused for reasons of its own form or of the node.
  var refusals: [Problem.Kind] = []
  var unixSocketOnly = false
  /// Of a POST: it asks.
  var onlyReads = false
  let answer: @Sendable (Request, Surroundings) throws -> Response

  var segments: [Substring] { template.dropFirst().split(separator: "/") }

  /// Path parameters in order.
  var parameters: [String] {
    segments.filter { $0.hasPrefix("{") }.map { String($0.dropFirst().dropLast()) }
  }
}
