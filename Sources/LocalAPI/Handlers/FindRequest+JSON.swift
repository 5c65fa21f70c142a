import Replication
import Seamesh

extension FindRequest {
  /// Of the body of a `find`.
  static let schema = Schema.object([
    .nullable("filter", .filter), .nullable("sort", .sort), .nullable("limit", .count), .nullable("skip", .count),
    .nullable("projection", .projection),
  ])

  init(body: [UInt8]) throws(Problem) {
    let (map, keys) = try JSON.envelope(body, keysOf: "sort")
    let members = try Members(map, of: "a find", allowed: FindRequest.schema.memberNames)
    self.init(
      filter: try members.optionalObject("filter") ?? ValueMap(),
      sort: try members["sort"].map { value throws(Problem) in try FindRequest.sortFields(value, keys) } ?? [],
      limit: try members.count("limit"), skip: try members.count("skip") ?? 0,
      projection: try members.optionalObject("projection"))
  }

  /// The same, each from a query parameter.
  init(target: RequestTarget) throws(Problem) {
    var members = ValueMap()
    for name in ["filter", "limit", "skip", "projection"] as [Text] {
      members[name] = try target[parameter: name].map { text throws(Problem) in
        let value = try FindRequest.naming(name) { () throws(Problem) in try JSON.value(text) }
        // Who names a parameter means something by it.
        guard value != .null else { throw .unprocessable("the query parameter \(name.string) is null") }
        return value
      }
    }
    let read = try Members(members, of: "the query", allowed: ["filter", "limit", "skip", "projection"])
    self.init(
      filter: try read.optionalObject("filter") ?? ValueMap(),
      sort: try target[parameter: "sort"].map { text throws(Problem) in
        let (value, keys) = try FindRequest.naming("sort") { () throws(Problem) in try JSON.ordered(text) }
        return try FindRequest.sortFields(value, keys)
      } ?? [],
      limit: try read.count("limit"), skip: try read.count("skip") ?? 0,
      projection: try read.optionalObject("projection"))
  }

  /// Where several parameters are JSON, a place in a text says nothing without its name.
  private static func naming<Answer>(
    _ name: Text, _ read: () throws(Problem) -> Answer
  ) throws(Problem) -> Answer {
    do throws(Problem) { return try read() } catch { throw error.of("the query parameter \(name.string)") }
  }

  /// `{"date":-1,"name":1}`, whose keys come in the order of the text, or a list of such objects.
  private static func sortFields(_ value: Value, _ keys: [Text]) throws(Problem) -> [SortField] {
    switch value {
    case .map(let map):
      return try keys.map { key throws(Problem) in try field(key, map[key] ?? .null) }
    case .array(let items):
      return try items.map { item throws(Problem) in
        guard case .map(let map) = item, let entry = map.entries.first, map.count == 1 else {
          throw .unprocessable("a list of sort fields holds objects with one field each")
        }
        return try field(entry.key, entry.value)
      }
    default: throw .unprocessable("sort is an object of fields with 1 or -1, or a list of such objects")
    }
  }

  private static func field(_ path: Text, _ direction: Value) throws(Problem) -> SortField {
    switch direction {
    case .int(1), .double(1): SortField(path: path, ascending: true)
    case .int(-1), .double(-1): SortField(path: path, ascending: false)
    default: throw .unprocessable("the direction of the sort field \(path.string) is 1 or -1")
    }
  }
}
