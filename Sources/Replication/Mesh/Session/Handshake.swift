/// How far the two sides of a session have come with knowing each other, each case with what is valid there alone.
enum Handshake: Sendable {
  /// The peer's hello has not come.
  case greeting(Greeting)
  /// The peer is not known here, and was asked to show that it is a member. `early`: what came before it had.
  case unknown(Greeting, early: StatementSet?)
  case joining
  case statements(StatementExchange)
  /// The peer's interest was asked for.
  case interest(DeferredComparison)
}

/// What this side has said before it knows who the peer is.
struct Greeting: Sendable {
  /// Digest of the statements as this side's hello named it: both sides decide by what both said. Nil: no hello was said.
  private(set) var statedAuthority: Digest?
  /// Statements learnt since this side's hello, before the peer's was there.
  private(set) var statementsSinceHello: [Statement] = []
  /// Own credentials may be asked for.
  var credentials = Once()

  mutating func sayHello(_ authority: Digest) { statedAuthority = authority }

  mutating func note(_ statements: [Statement]) { statementsSinceHello += statements }
}

/// What may be asked for once on a session, which is all that it needs.
struct Once: Sendable {
  private var isTaken = false

  /// False where that was done before.
  mutating func take() -> Bool {
    defer { isTaken = true }
    return !isTaken
  }
}

/// What the peer said that can be gone on with only when this side is live.
struct DeferredComparison: Sendable {
  /// A question of the peer's.
  var question: Summary?
  /// The peer named vectors before its interest was known here.
  var mustCompareAgain = false
}

extension PeerSession {
  /// The parts of a handshake: written only in the phase that has them.
  var greeting: Greeting? {
    get {
      switch state {
      case .handshake(.greeting(let greeting)), .handshake(.unknown(let greeting, _)): greeting
      default: nil
      }
    }
    set {
      guard let newValue else { return }
      switch state {
      case .handshake(.greeting): state = .handshake(.greeting(newValue))
      case .handshake(.unknown(_, let early)): state = .handshake(.unknown(newValue, early: early))
      default: break
      }
    }
  }

  var exchange: StatementExchange? {
    get { if case .handshake(.statements(let exchange)) = state { exchange } else { nil } }
    set {
      guard let newValue, case .handshake(.statements) = state else { return }
      state = .handshake(.statements(newValue))
    }
  }

  /// By its credentials the peer is a member, and not yet by statements.
  var isToBeShown: Bool { exchange?.isToBeShown ?? false }

  /// What is said of comparing before this side is live.
  var deferred: DeferredComparison? {
    get {
      switch state {
      case .handshake(.statements(let exchange)): exchange.deferred
      case .handshake(.interest(let deferred)): deferred
      default: nil
      }
    }
    set {
      guard let newValue else { return }
      if case .handshake(.interest) = state {
        state = .handshake(.interest(newValue))
      } else {
        exchange?.deferred = newValue
      }
    }
  }
}
