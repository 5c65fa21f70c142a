import Replication
import Seamesh

private let devicesParameter = Route.QueryParameter.count(
  "devices", "so many other devices have to hold what the backend does not; 2 where it is not said, 1 at least")
private let ageParameter = Route.QueryParameter.count(
  "milliseconds", "words that are older do not count; seven days where it is not said")
private let askParameter = Route.QueryParameter.flag(
  "ask", "true: peers in reach say first what they hold of what would be lost; takes up to two seconds")

let wipeRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/safe-to-wipe", name: "safeToWipe",
    summary:
      "Whether every change that is here is known to be in the backend or on other devices, by whose word and how old that is; "
      + "else what would be lost, and who in reach could take it.",
    query: [devicesParameter, ageParameter, askParameter]
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

extension WipeReport {
  var value: Value {
    .object([
      "safe": .bool(isSafe), "devices": .int(Int64(rules.devices)), "milliseconds": .int(rules.milliseconds),
      "changes": .int(Int64(clamping: changes)), "partitions": .int(Int64(partitions)),
      "lostChanges": .int(Int64(clamping: lostChanges)), "lostPartitions": .int(Int64(lostPartitions)),
      "losses": .list(losses) { loss in
        .object([
          "partition": .text(loss.partition), "changes": .int(Int64(clamping: loss.changes)),
          "apart": .int(Int64(clamping: loss.apart)),
          "documents": .list(loss.documents) { .object(["collection": .text($0.collection), "id": $0.id]) },
          "reachable": .list(loss.reachable) { .text($0) },
        ])
      },
      "evidence": .list(evidence, \.value), "uncounted": .list(uncounted, \.value),
      "asideFiles": .list(asideFiles) { .object(["path": .text($0.path), "records": .int(Int64($0.records))]) },
      "obstacles": .list(obstacles) { .text($0) }, "notes": .list(notes) { .text($0) },
    ])
  }
}

extension WipeReport.Witness {
  fileprivate var value: Value {
    .object([
      "device": .text(device), "label": .text(label), "role": .text(role), "isSelf": .bool(isSelf),
      "of": .text(isOfBackend ? "backend" : "device"), "partitions": .int(Int64(partitions)),
      "ageMilliseconds": ageMilliseconds.map { .int($0) } ?? .null, "flaw": .text(flaw),
    ])
  }
}
