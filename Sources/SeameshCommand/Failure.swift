/// What a script sees of an outcome.
enum ExitStatus: Int32, CaseIterable, Sendable {
  case done = 0
  case failed = 1
  case usage = 2
  case notFound = 3
  case notPermitted = 4
  case unreachable = 5
  case behind = 6
  case storeFailed = 7
  case otherVersion = 8
  case hung = 9

  var meaning: String {
    switch self {
    case .done: "done"
    case .failed: "failed"
    case .usage: "the command line was not understood"
    case .notFound: "not found"
    case .notPermitted: "not permitted"
    case .unreachable: "no node could be reached, or no backend"
    case .behind: "the backend lacks changes"
    case .storeFailed: "the store is damaged or its disk fails, and opening it again did not help"
    case .otherVersion: "the store is of a format that this version does not know"
    case .hung: "a part of the node hung, and it ended itself"
    }
  }
}

/// Why a verb did not do what was asked: one sentence for a person, with what to do next.
struct Failure: Error, Equatable {
  let status: ExitStatus
  let message: String
  /// The node had too much to do: the same may work in a moment.
  let isBusy: Bool

  init(_ status: ExitStatus, _ message: String, isBusy: Bool = false) {
    (self.status, self.message, self.isBusy) = (status, message, isBusy)
  }

  static func usage(_ message: String) -> Failure { Failure(.usage, message) }
}
