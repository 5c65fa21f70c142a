import Seamesh
import Wire

extension Problem {
  /// The one place where a node's refusals become HTTP.
  init(_ error: NodeError) {
    self.init(Kind(error.code), error.message)
    if let passed = error.limit { (limit, unit) = (passed.value, passed.unit) }
    operation = error.operation
    if error.code == .busy { headers.append(Header("Retry-After", "1")) }
  }

  /// Whatever a handler threw.
  init(any error: any Error) {
    switch error {
    case let problem as Problem: self = problem
    case let error as NodeError: self.init(error)
    default: self.init(.failed, words(of: error))
    }
  }
}

extension Problem.Kind {
  init(_ code: NodeError.Code) {
    self =
      switch code {
      case .badRequest: .badRequest
      case .notFound: .notFound
      case .notPermitted: .notPermitted
      case .preconditionFailed: .preconditionFailed
      case .tooLarge: .tooLarge
      case .unprocessable: .unprocessable
      case .damaged: .damagedDocument
      case .storeFailed: .storeFailed
      case .otherVersion: .otherVersion
      case .diskFull: .diskFull
      case .readOnly: .readOnly
      case .busy: .busy
      case .unanswered: .unanswered
      case .stopping: .stopping
      case .failed: .failed
      }
  }
}
