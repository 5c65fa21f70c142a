import Foundation
import Replication
import Testing
import Wire

@testable import Seamesh

/// The queries of the O-FISH apps over their data, with the results that the apps get.
@Suite("Queries of the apps", .enabled(if: SharedData.isThere, "needs ../shared/data"))
struct ExpectedQueryTests {
  struct Expected: CustomTestStringConvertible, Sendable {
    let name: String
    let partition: Text
    var predicate: String
    let sort: String
    let ids: [String]
    var testDescription: String { "\(name) in \(partition.string): \(predicate)" }
  }

  static let expected: [Expected] = {
    guard let file = SharedData.ofish?.appending(path: "generated/expected-queries.json"),
      let bytes = try? Data(contentsOf: file), case .array(let items)? = try? ExtendedJSON.parse([UInt8](bytes))
    else { return [] }
    var previous = ""
    return items.compactMap { item in
      guard case .map(let map) = item, case .array(let ids)? = map["ids"] else { return nil }
      func text(_ key: Text) -> String { if case .string(let text)? = map[key] { text.string } else { "" } }
      if !text("predicate").hasPrefix("as above") { previous = text("predicate") }
      return Expected(
        name: text("query"), partition: Text(text("partition")), predicate: previous, sort: text("sort"),
        ids: ids.map { if case .string(let id) = $0 { id.string } else { "" } })
    }
  }()

  @Test("all of them are read")
  func count() { #expect(ExpectedQueryTests.expected.count == 32) }

  @Test("a query gives what the app gets", arguments: expected)
  func query(_ expected: Expected) throws {
    var predicate = expected.predicate
    var file = "generated/boarding-reports.json"
    if let stripped = predicate.removing(prefix: "Photo: ") {
      (predicate, file) = (stripped, "generated/photo-docs.json")
    } else if let stripped = predicate.removing(prefix: "DutyChange: ") {
      (predicate, file) = (stripped, "docs/dutychange.json")
    }
    let isFirst = predicate.hasSuffix(", first")
    if isFirst { predicate = String(predicate.dropLast(7)) }
    let documents = try SharedData.documents(file).filter { $0.body["agency"] == .string(expected.partition) }
    let sort = expected.sort.split(separator: " ")
    let fields =
      sort.count == 2 ? [FindRequest.SortField(path: Text(String(sort[0])), ascending: sort[1] == "asc")] : []
    let request = FindRequest(filter: try filter(predicate), sort: fields, limit: isFirst ? 1 : nil)
    var found = try DocumentQuery(request).run(documents.shuffled())
    if expected.name.hasSuffix("one-row-per-permit") {
      var seen: Set<Value> = []
      found = found.filter { document in
        guard case .map(let vessel)? = document.body["vessel"] else { return true }
        return seen.insert(vessel["permitNumber"] ?? .null).inserted
      }
    }
    let ids = found.map { if case .objectID(let id) = $0.id { hexadecimal(id.bytes) } else { "" } }
    #expect(sort.count == 2 ? ids == expected.ids : Set(ids) == Set(expected.ids))
  }

  /// `a == 1 && (b CONTAINS[cd] "x" OR c != null)` and the like.
  private func filter(_ predicate: String) throws -> ValueMap {
    let text = predicate.replacingOccurrences(of: " && ", with: " AND ")
    let parts = text.components(separatedBy: " AND ").map { part in
      let alternatives = part.trimmingCharacters(in: CharacterSet(charactersIn: "()")).components(separatedBy: " OR ")
      return "{\"$or\":[" + alternatives.map(term).joined(separator: ",") + "]}"
    }
    return try parsedMap("{\"$and\":[" + parts.joined(separator: ",") + "]}")
  }

  private func term(_ text: String) -> String {
    let words = text.split(separator: " ", maxSplits: 2).map(String.init)
    return switch words[1] {
    case "==": "{\"\(words[0])\":\(words[2])}"
    case "!=": "{\"\(words[0])\":{\"$ne\":\(words[2])}}"
    default: "{\"\(words[0])\":{\"$contains\":\(words[2]),\"$fold\":\"cd\"}}"
    }
  }
}

extension String {
  fileprivate func removing(prefix: String) -> String? {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
  }
}
