import Links
import Replication

/// A class of links: what it may carry, what it has cost today, and what waits for it.
package struct LinkReport: Sendable, Equatable {
  /// `harbour`, `mobile`, `satellite` or `none`.
  package var linkClass = ""
  /// It stands for every link, by command.
  package var isChosen = false
  /// Interfaces with a session of this class now.
  package var interfaces: [String] = []
  package var sessions: Int64 = 0
  /// Nil: no limit, and no account.
  package var bytesPerDay: Int64?
  package var bytesToday: Int64?
  /// `everything`, `partitions`, `authority` or `nothing`.
  package var passes = ""
  /// In this order; empty where there is none.
  package var carries: [String] = []
  /// Until the next day begins; nil where nothing is counted.
  package var renewsMilliseconds: Int64?
  /// Of the log: what came since the limit was reached, or what a peer on such a link lacks.
  package var waitingChanges: Int64 = 0
  package var waitingBytes: Int64 = 0
  package var waitingMilliseconds: Int64 = 0
  /// What that will cost on the link, roughly.
  package var waitingCost: Int64 = 0

  package init() {}

  /// Per thousand: what TLS, TCP, IP and acknowledgements add to what the log holds of a change.
  package static let overheadPerThousand: Int64 = 120
  /// Stands for no class, but for each link's own.
  package static let automatic: Text = "auto"
  /// What may be chosen for all links.
  package static let choices = LinkClass.allCases.map(\.rawValue) + [automatic.string]

  /// Lines of Prometheus' text format.
  static func metrics(_ reports: [LinkReport]) -> [String] {
    let metered = reports.filter { $0.bytesPerDay != nil }
    guard !metered.isEmpty else { return [] }
    func lines(_ name: String, _ help: String, _ value: (LinkReport) -> Int64?) -> [String] {
      ["# HELP seamesh_link_\(name) \(help)", "# TYPE seamesh_link_\(name) gauge"]
        + metered.map { "seamesh_link_\(name){class=\"\($0.linkClass)\"} \(value($0) ?? 0)" }
    }
    return lines(
      "bytes_today", "Bytes that links of this class have carried today, as interfaces count them.", \.bytesToday)
      + lines("bytes_per_day", "Bytes that they may carry a day.", \.bytesPerDay)
      + lines("waiting_changes", "Changes that wait for such a link.") { $0.waitingChanges }
  }
}

extension LinkPassage {
  package var name: String {
    switch self {
    case .everything: "everything"
    case .partitions: "partitions"
    case .authority: "authority"
    case .nothing: "nothing"
    }
  }
}
