import Replication

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
  package internal(set) var waiting: LinkWaiting?
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
