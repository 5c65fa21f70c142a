/// Why a backend did not do what it was asked. `sentence` is for a person, and never has a secret in it.
package struct BackendProblem: Error, Equatable, Sendable {
  package enum Kind: String, Equatable, Sendable, CaseIterable {
    /// Nothing answers there.
    case noRoute = "no-route"
    /// Somebody answers and does not take the connection, or gave it up.
    case refused
    case auth
    case tls
    /// The tables are missing, newer, another fleet's or not to be written by this role.
    case schema
    /// Something of the batch cannot stand in the tables.
    case rejected
    /// The ledger lacks what the batch builds on.
    case gap
    /// The node stops.
    case interrupted
  }

  package let kind: Kind
  package let sentence: String
  /// What to do about it; empty where nothing can be done but to wait.
  package let remedy: String
  /// The role lacks a right.
  package let isLackOfRight: Bool
  /// It took longer than the server grants, and nothing of it is there.
  package let isLackOfTime: Bool
  /// Of a ``Kind/gap``: one run or mark of the batch names what is not there before it.
  package let isOfRow: Bool

  package init(
    _ kind: Kind, _ sentence: String, remedy: String = "", isLackOfRight: Bool = false, isLackOfTime: Bool = false,
    isOfRow: Bool = false
  ) {
    (self.kind, self.sentence, self.remedy) = (kind, sentence, remedy)
    (self.isLackOfRight, self.isLackOfTime, self.isOfRow) = (isLackOfRight, isLackOfTime, isOfRow)
  }
}

/// How forwarding does, in a word.
package enum ForwardingState: String, Equatable, Sendable, CaseIterable {
  case noRoute = "no-route"
  case refused
  case auth
  case tls
  case schema
  case lagging
  case caughtUp = "caught-up"

  init(_ problem: BackendProblem) {
    self =
      switch problem.kind {
      case .noRoute: .noRoute
      case .refused: .refused
      case .auth: .auth
      case .tls: .tls
      case .schema: .schema
      case .rejected, .gap, .interrupted: .lagging
      }
  }
}
