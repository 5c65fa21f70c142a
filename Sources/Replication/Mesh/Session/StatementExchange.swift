/// Where one session's exchange of statements stands: statements go before everything that is judged under them, and where two
/// sets differ, both learn what they lack first.
struct StatementExchange: Sendable {
  /// Which step the peer has to say next.
  enum Awaited: Sendable {
    case nothing
    case buckets
    case tips
    case wanted
  }

  /// What a step of the peer's leads to.
  enum Answer {
    case say(StatementSet.Step)
    /// What the peer lacks by the tips that it told.
    case sendMissing(by: [IssuerTips])
  }

  private var awaited: Awaited
  /// By its credentials the peer is a member, but not yet by the statements that are here: nothing but statements is said to
  /// it.
  private(set) var isToBeShown: Bool
  /// The peer's tips of those issuers of whom it holds something else: what it lacks waits for its own statements.
  private(set) var owed: [IssuerTips]?
  /// Learnt since the exchange began, and not among what the peer is being sent.
  private(set) var learnt: Set<Digest> = []
  /// What the peer lacks is on its way.
  private(set) var isAnswered = false
  /// All of it was sent.
  private var isComplete = false
  private var peerIsComplete = false
  /// Until the peer has sent all: nothing that it lacks comes later.
  var aside = StatementsAside()
  var deferred = DeferredComparison()
  /// A listener may be asked for its credentials behind its hello.
  var credentials = Once()

  /// The listener begins with its buckets.
  init(isDialer: Bool, isToBeShown: Bool) {
    awaited = isDialer ? .buckets : .tips
    self.isToBeShown = isToBeShown
  }

  var isOver: Bool { isComplete && peerIsComplete }

  mutating func receive(_ told: StatementSet.Step, _ ledger: Ledger) throws(SessionEnd) -> [Answer] {
    switch (awaited, told) {
    case (.buckets, .buckets(let told)):
      let own = ledger.fleetStatements
      let listed = own.differing(from: told, ledger.cryptography.hash)
      awaited = .wanted
      return [.say(.tips(listed: listed, own.list(listed)))]
    case (.tips, .tips(let listed, let told)): return answer(told, in: listed, ledger.fleetStatements)
    case (.wanted, .wanted(let told)):
      awaited = .nothing
      return [.sendMissing(by: told)]
    default: throw .outOfTurn
    }
  }

  /// The listener's answer. What the dialer lacks follows at once where that can be told from its tips, and otherwise once
  /// its own statements are here.
  private mutating func answer(_ told: [IssuerTips], in buckets: UInt64, _ held: ScopeStatements) -> [Answer] {
    let differing = held.differing(from: told, in: buckets)
    let wanted = held.wanted(of: differing)
    awaited = .nothing
    guard !isToBeShown, wanted.isEmpty else {
      owed = differing
      return [.say(.wanted(wanted))]
    }
    return [.say(.wanted(wanted)), .sendMissing(by: differing)]
  }

  mutating func learn(_ fresh: [Statement]) { learnt.formUnion(fresh.map(\.id)) }

  mutating func noteAnswered() { (owed, isAnswered) = (nil, true) }

  mutating func noteComplete() { isComplete = true }

  /// The peer has sent all that was lacking here.
  mutating func notePeerComplete() throws(SessionEnd) {
    guard !peerIsComplete, awaited == .nothing else { throw .outOfTurn }
    (peerIsComplete, aside) = (true, StatementsAside())
  }

  /// After the peer's statements: its credentials alone are not enough. Answers whether it is a member by now, and was not
  /// before.
  mutating func showMembership(_ isMember: Bool) throws(SessionEnd) -> Bool {
    guard isToBeShown else { return false }
    guard isMember else { throw SessionEnd(.notAMember, "its statements do not show it to be a member") }
    isToBeShown = false
    return true
  }
}
