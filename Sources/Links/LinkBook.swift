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
    if account.charged > account.saved {
      account.reserve(max(limit / 100, LinkBook.leastReserve))
      outcome.mustSave = true
    }
    accounts[linkClass] = account
    if isUsedUp(linkClass) != wasUsedUp { outcome.hasMovedPassage = true }
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

/// What goes through a restart.
package struct StoredLinks: Equatable, Sendable {
  package struct Account: Equatable, Sendable {
    /// Days since 1970.
    package let day: Int64
    package let charged: UInt64
    package init(day: Int64, charged: UInt64) { (self.day, self.charged) = (day, charged) }
  }

  package var chosen: LinkClass?
  package var accounts: [LinkClass: Account]

  package init(chosen: LinkClass? = nil, accounts: [LinkClass: Account] = [:]) {
    (self.chosen, self.accounts) = (chosen, accounts)
  }
}

/// What a class of links has cost on one day.
package struct LinkAccount: Equatable, Sendable {
  /// Days since 1970; nil until the first look at a clock.
  package private(set) var day: Int64?
  package private(set) var charged: UInt64 = 0
  /// What a restart would find.
  private(set) var saved: UInt64 = 0
  /// The clock was found to lie before ``day``.
  private var isEarlySince: MonotonicTime?

  init() {}

  init(_ stored: StoredLinks.Account) { (day, charged, saved) = (stored.day, stored.charged, stored.charged) }

  var stored: StoredLinks.Account { StoredLinks.Account(day: day ?? 0, charged: saved) }

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
