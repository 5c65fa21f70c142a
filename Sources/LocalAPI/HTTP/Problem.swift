import Replication

/// An error answer: `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `detail`, for a limit
/// `limit` and `unit`, for JSON that cannot be read `line`, `column` and `offset`, and of a transaction the `operation` that
/// is refused.
package struct Problem: Error, Equatable {
  package enum Kind: String, Sendable, CaseIterable {
    case badRequest = "bad-request"
    case unauthorized = "unauthorized"
    case notPermitted = "not-permitted"
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    case preconditionFailed = "precondition-failed"
    case tooLarge = "too-large"
    case targetTooLong = "target-too-long"
    case headersTooLarge = "headers-too-large"
    case unsupportedMediaType = "unsupported-media-type"
    case misdirected = "misdirected"
    case unprocessable = "unprocessable"
    case failed = "failed"
    case busy = "busy"
    case unanswered = "unanswered"
    case stopping = "stopping"
    case readOnly = "read-only"
    case diskFull = "disk-full"
    case damagedDocument = "damaged-document"
    case storeFailed = "store-failed"
    case otherVersion = "other-version"

    package var type: String { "urn:seamesh:problem:\(rawValue)" }

    package var status: Int {
      switch self {
      case .badRequest: 400
      case .unauthorized: 401
      case .notPermitted: 403
      case .notFound: 404
      case .methodNotAllowed: 405
      case .preconditionFailed: 412
      case .tooLarge: 413
      case .targetTooLong: 414
      case .headersTooLarge: 431
      case .unsupportedMediaType: 415
      case .misdirected: 421
      case .unprocessable: 422
      case .failed, .otherVersion: 500
      case .busy, .stopping, .readOnly, .damagedDocument, .storeFailed: 503
      case .unanswered: 504
      case .diskFull: 507
      }
    }

    package var title: String {
      switch self {
      case .badRequest: "The request cannot be understood"
      case .unauthorized: "A bearer token is needed"
      case .notPermitted: "Not permitted"
      case .notFound: "Not found"
      case .methodNotAllowed: "Method not allowed"
      case .preconditionFailed: "The document is not in the state that the request names"
      case .tooLarge: "Too large"
      case .targetTooLong: "The request target is too long"
      case .headersTooLarge: "The headers are too large"
      case .unsupportedMediaType: "The content type is not taken here"
      case .misdirected: "The Host is not this node's"
      case .unprocessable: "Well formed, but not possible"
      case .failed: "The node failed"
      case .busy: "Busy"
      case .unanswered: "The node has not answered in time"
      case .stopping: "The node is stopping"
      case .readOnly: "The node takes no writes now"
      case .diskFull: "The disk is full"
      case .damagedDocument: "The document is damaged on this device"
      case .storeFailed: "The store is damaged, or its disk fails"
      case .otherVersion: "The store is of another version"
      }
    }
  }

  package let kind: Kind
  package let detail: String
  var limit: Int?
  var unit = ""
  var place: Place?
  /// From 1.
  var operation: Int?
  var headers: [Header] = []

  /// Where in the body: line and column from 1, offset in bytes from 0.
  struct Place: Sendable, Equatable {
    let line: Int
    let column: Int
    let offset: Int
  }

  init(_ kind: Kind, _ detail: String) { (self.kind, self.detail) = (kind, detail) }

  static func badRequest(_ detail: String) -> Problem { Problem(.badRequest, detail) }
  static func unprocessable(_ detail: String) -> Problem { Problem(.unprocessable, detail) }

  static let tooManyAtOnce = Problem(.busy, "too many large requests at once; send this one again")
    .with("Retry-After", "1")

  /// A limit that was passed, named with its figure.
  static func limit(_ kind: Kind, _ what: String, _ limit: Int, unit: String) -> Problem {
    var problem = Problem(kind, "\(what): at most \(limit)\(unit.isEmpty ? "" : " \(unit)")")
    (problem.limit, problem.unit) = (limit, unit)
    return problem
  }

  /// What is wrong with one operation of a transaction, or with one query parameter, says so.
  func of(_ what: String, operation: Int? = nil) -> Problem {
    var problem = Problem(kind, detail.contains(what) ? detail : "\(what): \(detail)")
    (problem.limit, problem.unit, problem.place, problem.headers) = (limit, unit, place, headers)
    problem.operation = operation
    return problem
  }

  func with(_ name: String, _ value: String) -> Problem {
    var problem = self
    problem.headers.append(Header(name, value))
    return problem
  }

  var value: Value {
    var members = ValueMap(members: [
      "type": .text(kind.type), "title": .text(kind.title),
      "status": .int(Int64(kind.status)), "detail": .text(detail),
    ])
    if let limit { (members["limit"], members["unit"]) = (.int(Int64(limit)), .text(unit)) }
    if let place {
      members["line"] = .int(Int64(place.line))
      members["column"] = .int(Int64(place.column))
      members["offset"] = .int(Int64(place.offset))
    }
    if let operation { members["operation"] = .int(Int64(operation)) }
    return .map(members)
  }

  var response: Response {
    var response = Response.json(value, status: kind.status, type: .problem)
    response.headers += headers
    return response
  }
}
