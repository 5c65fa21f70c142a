import Engine
import Links
import Replication

extension LinkKeeper {
  /// Classes with a rule, with a session, or chosen by command.
  func reports(_ view: EngineView) -> [LinkReport] {
    let (book, paths) = (book, paths)
    let log = (changes: view.status.changes, byteCount: view.status.logBytes)
    let byClass = Dictionary(grouping: view.lags) { session, _ in paths[session].map(book.linkClass) ?? .harbour }
    return LinkClass.allCases.compactMap { linkClass in
      let sessions = byClass[linkClass] ?? []
      let isNamed = book.rules.contains { $0.linkClass == linkClass } || book.chosen == linkClass
      guard isNamed || !sessions.isEmpty else { return nil }
      var report = LinkKeeper.report(book, linkClass)
      report.sessions = Int64(sessions.count)
      report.interfaces = Set(sessions.compactMap { paths[$0.0]?.interface.string }).sorted()
      LinkKeeper.addWaiting(book, linkClass, log, lag: sessions.map(\.1).max() ?? 0, to: &report)
      return report
    }
  }

  func use(_ name: Text) throws(NodeError) {
    guard name != LinkReport.automatic else { return choose(nil) }
    guard let linkClass = LinkClass(rawValue: name.string) else {
      let names = LinkReport.choices
      throw NodeError(
        .unprocessable, "there is no class of links by this name; there are \(names.joined(separator: ", "))")
    }
    choose(linkClass)
  }

  private static func report(_ book: LinkBook, _ linkClass: LinkClass) -> LinkReport {
    var report = LinkReport()
    report.linkClass = linkClass.rawValue
    report.isChosen = book.chosen == linkClass
    let rule = book.rule(of: linkClass)
    report.bytesPerDay = rule.bytesPerDay.map { Int64(clamping: $0) }
    report.bytesToday = book.account(of: linkClass).map { Int64(clamping: $0.charged) }
    report.passes = book.passage(linkClass).name
    report.carries = rule.carries?.map(\.string) ?? []
    report.renewsMilliseconds = report.bytesPerDay.map { _ in LinkBook.millisecondsLeft(WallClock.milliseconds) }
    return report
  }

  /// - Parameter lag: changes that a peer on such a link is known to lack.
  private static func addWaiting(
    _ book: LinkBook, _ linkClass: LinkClass, _ log: (changes: Int64, byteCount: Int64), lag: Int64,
    to report: inout LinkReport
  ) {
    let perChange = log.changes > 0 ? log.byteCount / log.changes : 0
    if let since = book.account(of: linkClass)?.waiting, book.isUsedUp(linkClass) {
      report.waitingChanges = max(0, log.changes - since.changes)
      report.waitingBytes = max(0, log.byteCount - since.byteCount)
      report.waitingMilliseconds = max(0, WallClock.milliseconds - since.since)
    } else if lag > 0 {
      report.waitingChanges = lag
      report.waitingBytes = lag.multipliedReportingOverflow(by: perChange).partialValue
    }
    let (scaled, overflow) = report.waitingBytes.multipliedReportingOverflow(by: LinkReport.overheadPerThousand)
    report.waitingCost = overflow ? .max : report.waitingBytes.addingReportingOverflow(scaled / 1_000).partialValue
  }
}
