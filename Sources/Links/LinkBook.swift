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

/// What may pass over a link now.
package enum LinkPassage: Hashable, Sendable {
  case everything
  /// Authority, and changes of the partitions that one of these names, in this order.
  case partitions([Text])
  case authority
  case nothing
}

/// What may pass, and how much may be under way.
package struct LinkAllowance: Hashable, Sendable {
  package let passage: LinkPassage
  /// Somebody pays for what is under way, or what comes up next must not wait long behind it.
  package let isThin: Bool

  package static let free = LinkAllowance(.everything, isThin: false)

  package init(_ passage: LinkPassage, isThin: Bool) { (self.passage, self.isThin) = (passage, isThin) }
}

/// What goes through a restart.
package struct StoredLinks: Equatable, Sendable {
  package struct Account: Equatable, Sendable {
    /// Days since 1970.
    package let day: Int64
    package let charged: UInt64
    package let waiting: LinkWaiting?

    package init(day: Int64, charged: UInt64, waiting: LinkWaiting? = nil) {
      (self.day, self.charged, self.waiting) = (day, charged, waiting)
    }
  }

  package var chosen: LinkClass?
  package var accounts: [LinkClass: Account]

  package init(chosen: LinkClass? = nil, accounts: [LinkClass: Account] = [:]) {
    (self.chosen, self.accounts) = (chosen, accounts)
  }
}

/// The log as it was when a class of links came to its limit.
package struct LinkWaiting: Equatable, Sendable {
  /// Milliseconds since 1970, UTC.
  package let since: Int64
  package let changes: Int64
  package let byteCount: Int64

  package init(since: Int64, changes: Int64, byteCount: Int64) {
    (self.since, self.changes, self.byteCount) = (since, changes, byteCount)
  }
}

/// What a class of links has cost on one day.
package struct LinkAccount: Equatable, Sendable {
  /// Days since 1970; nil until the first look at a clock.
  package private(set) var day: Int64?
  package private(set) var charged: UInt64 = 0
  /// What a restart would find.
  private var saved: UInt64 = 0
  /// Since when it is used up.
  package fileprivate(set) var waiting: LinkWaiting?
  /// The clock was found to lie before ``day``.
  private var isEarlySince: MonotonicTime?

  init() {}

  init(_ stored: StoredLinks.Account) {
    (day, charged, saved, waiting) = (stored.day, stored.charged, stored.charged, stored.waiting)
  }

  var stored: StoredLinks.Account { StoredLinks.Account(day: day ?? 0, charged: saved, waiting: waiting) }

  var savedAhead: UInt64 { saved > charged ? saved - charged : 0 }

  mutating func charge(_ byteCount: UInt64) {
    let (sum, overflow) = charged.addingReportingOverflow(byteCount)
    charged = overflow ? .max : sum
  }

  mutating func reserve(_ byteCount: UInt64) {
    let (sum, overflow) = charged.addingReportingOverflow(byteCount)
    saved = overflow ? .max : sum
  }

  /// True where another day has begun.
  mutating func turn(to moment: LinkBook.Moment) -> Bool {
    guard let day, day != moment.day else {
      if day == nil { day = moment.day }
      isEarlySince = nil
      return false
    }
    if moment.day < day {
      let since = isEarlySince ?? moment.now
      isEarlySince = since
      guard moment.now.millisecondsSince(since) >= UInt64(LinkBook.dayMilliseconds) else { return false }
    }
    self = LinkAccount()
    self.day = moment.day
    return true
  }
}

extension Int64 {
  /// Rounded towards the past. The divisor is positive.
  fileprivate func dividedFloored(by divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
