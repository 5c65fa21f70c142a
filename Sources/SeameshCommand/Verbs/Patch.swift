import Replication
import Seamesh
import Wire

/// The body of a PATCH, from what was typed.
struct Patch: Equatable {
  let json: String
  let contentType: String
  /// The document's, where a merge patch names it.
  let id: Value?

  private static let mergePatch = "application/merge-patch+json"

  init(json: String?, set: [String], unset: [String]) throws(Failure) {
    switch (json, set.isEmpty && unset.isEmpty) {
    case (let json?, true): try self.init(json)
    case (nil, false): try self.init(set: set, unset: unset)
    case (nil, true): throw .usage("what is to be changed is missing: give JSON, --set=PATH=JSON or --unset=PATH")
    case (.some, false): throw .usage("JSON and --set or --unset exclude one another")
    }
  }

  private init(_ json: String) throws(Failure) {
    guard case .map(let map) = try typedJSON(json, "the patch") else { throw .usage("a patch is a JSON object") }
    let operators = map.entries.count { $0.key.utf8.first == UInt8(ascii: "$") }
    guard operators == 0 || operators == map.count else {
      throw .usage("a patch has fields, or operators that begin with $, but not both")
    }
    if operators > 0 { try wellFormed { () throws(NodeError) in try UpdateOperators.check(map) } }
    id = operators > 0 ? nil : map["_id"]
    (self.json, contentType) = (json, operators > 0 ? "application/json" : Patch.mergePatch)
  }

  /// A merge patch where that means the same; operators where only they can say it.
  private init(set: [String], unset: [String]) throws(Failure) {
    var fields: [(path: [Text], value: Value)] = []
    for text in set {
      let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard sides.count == 2 else { throw .usage("--set takes PATH=JSON, not \(shown(text))") }
      let value = try typedJSON(String(sides[1]), "the value of \(shown(String(sides[0]))) (quote strings: '\"…\"')")
      fields.append((try Patch.path(String(sides[0])), value))
    }
    let removed = try unset.map { path throws(Failure) in try Patch.path(path) }
    guard !(fields.map(\.path) + removed).contains(where: { $0.first == "_id" }) else {
      throw .usage("a document's _id never changes")
    }
    id = nil
    if !fields.allSatisfy({ Patch.isPlain($0.path, $0.value) })
      || !removed.allSatisfy({ Patch.isPlain($0, .bool(true)) })
    {
      json = ExtendedJSON.operatorText([("$set", fields), ("$unset", removed.map { ($0, .string("")) })])
      contentType = "application/json"
    } else {
      var map = ValueMap()
      for (path, value) in fields + removed.map({ ($0, .null) }) { map[path[0]] = value }
      (json, contentType) = (ExtendedJSON.text(.map(map)), Patch.mergePatch)
    }
  }

  private static func path(_ text: String) throws(Failure) -> [Text] {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { Text(String($0)) }
    guard parts.allSatisfy({ !$0.utf8.isEmpty }) else { throw .usage("\(shown(text)) is not a path of fields") }
    return parts
  }

  /// In a merge patch null removes, an object merges, and a path of several fields takes the place of whatever is no object
  /// on its way, a whole array among it.
  private static func isPlain(_ path: [Text], _ value: Value) -> Bool {
    switch value {
    case .null, .map: false
    default: path.count == 1 && path.first?.utf8.first != UInt8(ascii: "$")
    }
  }
}

extension ExtendedJSON {
  /// `{"$set":{…},"$unset":{…}}`, whose keys the writer would mark as data.
  fileprivate static func operatorText(_ operators: [(name: String, fields: [(path: [Text], value: Value)])]) -> String
  {
    let parts = operators.filter { !$0.fields.isEmpty }.map { name, fields in
      var map = ValueMap()
      for field in fields { map[Text(field.path.map(\.string).joined(separator: "."))] = field.value }
      return "\(text(.string(Text(name)))):\(text(.map(map)))"
    }
    return "{\(parts.joined(separator: ","))}"
  }
}
