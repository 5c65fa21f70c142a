import Replication

/// Which link is of which class, and what each class has cost today: a value without IO, to which time is handed in.
///
/// A day is one of UTC by the wall clock. A clock that is put back begins no new day; an account of a day that has not come
/// yet ends after 24 hours of running.
package struct LinkBook: Sendable {
  package struct Moment: Sendable {
    /// Milliseconds since 1970, UTC.
    package let wallMilliseconds: Int64
    package let now: MonotonicTime

    package init(wallMilliseconds: Int64, now: MonotonicTime) {
      (self.wallMilliseconds, self.now) = (wallMilliseconds, now)
    }

    var day: Int64 { wallMilliseconds.dividedFloored(by: LinkBook.dayMilliseconds) }
  }

  /// What whoever called has to do now.
  package struct Outcome: Equatable, Sendable {
    /// What may pass on some link is something else than before.
    package var hasMovedPassage = false
    /// ``LinkBook/stored`` is to be written, so that a restart finds no less than what was spent.
    package var mustSave = false
    /// Classes that came to their limit with this: ``LinkBook/note(_:usedUp:)`` wants to know what the log held then.
    package var usedUp: [LinkClass] = []

    package init(hasMovedPassage: Bool = false, mustSave: Bool = false) {
      (self.hasMovedPassage, self.mustSave) = (hasMovedPassage, mustSave)
    }
  }

  package static let dayMilliseconds: Int64 = 86_400_000

  package let rules: [LinkRule]
  /// By command, for every link; nil: each by its rule.
  package private(set) var chosen: LinkClass?
  private var accounts: [LinkClass: LinkAccount] = [:]

  /// - Parameters:
  ///   - rules: the first that matches a route counts, then the first that matches an interface.
  ///   - stored: as ``stored`` was at the last start.
  package init(rules: [LinkRule], stored: StoredLinks = StoredLinks()) {
    (self.rules, chosen) = (rules, stored.chosen)
    for linkClass in LinkClass.allCases where rule(of: linkClass).bytesPerDay != nil {
      accounts[linkClass] = stored.accounts[linkClass].map { LinkAccount($0) } ?? LinkAccount()
    }
  }

  // MARK: Classes

  /// Who talks to itself pays nobody.
  package func linkClass(of path: LinkPath) -> LinkClass {
    let rule = rules.first { $0.matches(route: path) } ?? rules.first { $0.matches(interface: path) }
    if let chosen, !path.remote.isLoopback || rule != nil { return chosen }
    return rule?.linkClass ?? .harbour
  }

  package func rule(of linkClass: LinkClass) -> LinkRule {
    rules.first { $0.linkClass == linkClass } ?? LinkRule(linkClass)
  }

  package func account(of linkClass: LinkClass) -> LinkAccount? { accounts[linkClass] }
  package func isMetered(_ linkClass: LinkClass) -> Bool { accounts[linkClass] != nil }

  /// What may pass now.
  package func passage(_ linkClass: LinkClass) -> LinkPassage {
    guard linkClass != .closed else { return .nothing }
    let rule = rule(of: linkClass)
    if isUsedUp(linkClass) { return .authority }
    return rule.carries.map { .partitions($0) } ?? .everything
  }

  package func allowance(_ linkClass: LinkClass) -> LinkAllowance {
    let passage = passage(linkClass)
    return LinkAllowance(passage, isThin: isMetered(linkClass) || passage != .everything)
  }

  package func isUsedUp(_ linkClass: LinkClass) -> Bool {
    guard let account = accounts[linkClass], let limit = rule(of: linkClass).bytesPerDay else { return false }
    return account.charged >= limit
  }

  // MARK: What happens

  package mutating func charge(_ byteCount: UInt64, on linkClass: LinkClass, _ moment: Moment) -> Outcome {
    var outcome = look(moment)
    guard var account = accounts[linkClass], let limit = rule(of: linkClass).bytesPerDay else { return outcome }
    let wasUsedUp = isUsedUp(linkClass)
    account.charge(byteCount)
    let slice = max(limit / 100, LinkBook.leastReserve)
    if account.savedAhead < slice / 2 {
      account.reserve(slice)
      outcome.mustSave = true
    }
    accounts[linkClass] = account
    if isUsedUp(linkClass) != wasUsedUp { (outcome.hasMovedPassage, outcome.usedUp) = (true, [linkClass]) }
    return outcome
  }

  /// Written down ahead, so that what a process that was killed had spent is never forgotten: it may count for more.
  static let leastReserve: UInt64 = 16 * 1024

  /// A day may be over.
  package mutating func look(_ moment: Moment) -> Outcome {
    var outcome = Outcome()
    for linkClass in accounts.keys.sorted() {
      let wasUsedUp = isUsedUp(linkClass)
      guard accounts[linkClass]?.turn(to: moment) == true else { continue }
      outcome.mustSave = true
      if wasUsedUp { outcome.hasMovedPassage = true }
    }
    return outcome
  }

  /// What the log held when a class came to its limit: what came since waits for the next day.
  package mutating func note(_ log: LinkWaiting, usedUp linkClass: LinkClass) {
    accounts[linkClass]?.waiting = log
  }

  package mutating func choose(_ linkClass: LinkClass?) -> Outcome {
    guard chosen != linkClass else { return Outcome() }
    chosen = linkClass
    return Outcome(hasMovedPassage: true, mustSave: true)
  }

  /// The next start may rely on this being all: nothing is under way any more.
  package mutating func settle() {
    for linkClass in accounts.keys { accounts[linkClass]?.reserve(0) }
  }

  package var stored: StoredLinks { StoredLinks(chosen: chosen, accounts: accounts.mapValues(\.stored)) }

  /// Until the present day is over.
  package static func millisecondsLeft(_ wallMilliseconds: Int64) -> Int64 {
    let day = wallMilliseconds.dividedFloored(by: dayMilliseconds)
    return day.addingReportingOverflow(1).partialValue
      .multipliedReportingOverflow(by: dayMilliseconds).partialValue
      .subtractingReportingOverflow(wallMilliseconds).partialValue
  }
}

extension Int64 {
  /// Rounded towards the past. The divisor is positive.
  fileprivate func dividedFloored(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
