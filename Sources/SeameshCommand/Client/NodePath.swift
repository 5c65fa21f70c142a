import LocalAPI
import Replication
import Wire

/// Targets of requests, from what was typed.
enum NodePath {
  static func collection(_ partition: String, _ collection: String) -> String {
    "/v1/partitions/\(encoded(partition))/collections/\(encoded(collection))"
  }

  /// `id` as the path has it: text, or Extended JSON where it begins with `{` or `"`.
  static func document(_ partition: String, _ collection: String, id: String) -> String {
    NodePath.collection(partition, collection) + "/documents/" + encoded(id)
  }

  static func encoded(_ text: String) -> String { percentEncoded(Text(text)) }

  static func query(_ parameters: [(name: String, value: String?)]) -> String {
    let fields = parameters.compactMap { parameter in parameter.value.map { "\(parameter.name)=\(encoded($0))" } }
    return fields.isEmpty ? "" : "?" + fields.joined(separator: "&")
  }

  static let idTypes = ["string", "oid", "uuid", "int"]

  /// The id segment for what stands on the command line, of the type that `--id-type` names.
  static func id(_ typed: String, type: String?) throws(Failure) -> String {
    let segment = try segment(typed, type)
    do throws(Problem) { _ = try DocumentID.parse(segment: Text(segment)) } catch { throw .usage(shown(error.detail)) }
    return segment
  }

  private static func segment(_ typed: String, _ type: String?) throws(Failure) -> String {
    let quoted = ExtendedJSON.text(.string(Text(typed)))
    switch type {
    case "string": return quoted
    case "oid": return try checked("{\"$oid\":\(quoted)}", typed, "24 hexadecimal digits")
    case "uuid": return try checked("{\"$uuid\":\(quoted)}", typed, "a UUID")
    case "int": return try checked("{\"$numberLong\":\(quoted)}", typed, "a whole number")
    default:
      // The node takes these for Extended JSON.
      if typed.hasPrefix("{") || typed.hasPrefix("\"") { _ = try typedJSON(typed, "the ID") }
      return typed
    }
  }

  private static func checked(_ json: String, _ typed: String, _ expected: String) throws(Failure) -> String {
    guard (try? ExtendedJSON.parse(Array(json.utf8))) != nil else {
      throw .usage("the ID \(shown(typed)) is not \(expected)")
    }
    return json
  }
}

/// JSON that was typed as an argument; a mistake in it is one of usage.
func typedJSON(_ text: String, _ what: String) throws(Failure) -> Value {
  do throws(JSONError) {
    let bytes = Array(text.utf8)
    return try ExtendedJSON.parse(bytes, limits: ExtendedJSON.Limits(byteCount: bytes.count), operators: .allowed)
  } catch {
    throw .usage("\(what) is not JSON. \(error.message)")
  }
}

extension Value {
  var map: ValueMap? { if case .map(let map) = self { map } else { nil } }
  var items: [Value] { if case .array(let items) = self { items } else { [] } }
  /// For a person: text as it is, anything else as JSON.
  var shownText: String {
    switch self {
    case .string(let text): text.string
    case .null: ""
    default: ExtendedJSON.text(self)
    }
  }
}

extension ValueMap {
  func text(_ key: Text) -> String { self[key]?.shownText ?? "" }
  func number(_ key: Text) -> Int64 { if case .int(let number)? = self[key] { number } else { 0 } }
  func flag(_ key: Text) -> Bool { self[key] == .bool(true) }
  func list(_ key: Text) -> [ValueMap] { self[key]?.items.compactMap(\.map) ?? [] }
  func texts(_ key: Text) -> [String] { self[key]?.items.map(\.shownText) ?? [] }
}
