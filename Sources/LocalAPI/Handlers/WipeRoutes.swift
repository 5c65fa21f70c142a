import Replication
import Seamesh

private let devicesParameter = Route.QueryParameter.count(
  "devices", from: 1, "so many other devices have to hold what the backend does not; 2 where it is not said, 1 at least"
)
private let ageParameter = Route.QueryParameter.count(
  "milliseconds", from: 1, "words that are older do not count; seven days where it is not said")
private let askParameter = Route.QueryParameter.flag(
  "ask", "true: peers in reach say first what they hold of what would be lost; takes up to two seconds")

let wipeRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/safe-to-wipe", name: "safeToWipe",
    summary:
      "Whether every change that is here is known to be in the backend or on other devices, by whose word and how old that is; "
      + "else what would be lost, and who in reach could take it.",
    query: [devicesParameter, ageParameter, askParameter], result: .json(WipeReport.schema)
  ) { request, surroundings in
    var rules = WipeRules()
    rules.devices = try request.positive(devicesParameter.name) ?? rules.devices
    rules.milliseconds = try request.positive(ageParameter.name).map { Int64($0) } ?? rules.milliseconds
    let report = try surroundings.node.safeToWipe(rules, asking: try request.flag(askParameter.name))
    return .json(report.value)
  }
]

extension Request {
  fileprivate func positive(_ name: String) throws(Problem) -> Int? {
    guard let text = target[parameter: Text(name)] else { return nil }
    guard let number = Int(text.string), number > 0 else {
      throw .badRequest("the query parameter \(name) is a whole number above 0")
    }
    return number
  }
}

extension WipeReport: Tabled {
  static let table: [Member<WipeReport>] = [
    Member("safe", \.isSafe), Member("devices", \.rules.devices, .count),
    Member("milliseconds", \.rules.milliseconds, .count), Member("changes", \.changes),
    Member("partitions", \.partitions, .count), Member("lostChanges", \.lostChanges),
    Member("lostPartitions", \.lostPartitions, .count), Member("nowhereChanges", \.nowhereChanges),
    Member("losses", \.losses), Member("evidence", \.evidence), Member("uncounted", \.uncounted),
    Member("asideFiles", \.asideFiles), Member("obstacles", \.obstacles), Member("notes", \.notes),
  ]
}

extension WipeReport.Loss: Tabled {
  static let table: [Member<WipeReport.Loss>] = [
    Member("partition", \.partition), Member("changes", \.changes), Member("apart", \.apart),
    Member("documents", \.documents), Member("reachable", \.reachable),
    Member("holders", \.holders), Member("hindrances", \.hindrances),
  ]
}

extension WipeReport.Document: Tabled {
  static let table: [Member<WipeReport.Document>] = [
    Member("collection", \.collection), Member("id", \.id, .documentID),
  ]
}

extension WipeReport.AsideFile: Tabled {
  static let table: [Member<WipeReport.AsideFile>] = [
    Member("path", \.path), Member("records", \.records, .count),
  ]
}

extension WipeReport.Witness: Tabled {
  static let table: [Member<WipeReport.Witness>] = [
    Member("device", \.device), Member("label", \.label), Member("role", \.role), Member("isSelf", \.isSelf),
    Member("of", .oneOf(["backend", "device"])) { .text($0.isOfBackend ? "backend" : "device") },
    Member("partitions", \.partitions, .count), Member("ageMilliseconds", \.ageMilliseconds),
    Member("flaw", \.flaw, .oneOf(["", "ended", "forked", "unentitled", "barred", "old", "clock", "unheard"])),
  ]
}
