import Replication
import Testing

@testable import Seamesh

@Suite("Sort, limit and projection")
struct DocumentQueryTests {
  private func ids(_ documents: [StoredDocument]) -> [Int64] {
    documents.map { if case .int(let id) = $0.id { id } else { -1 } }
  }

  private func sorted(_ bodies: [String], _ fields: [(Text, Bool)]) throws -> [Int64] {
    let documents = try bodies.enumerated().map { try document(Int64($0.offset), $0.element) }
    let sort = fields.map { FindRequest.SortField(path: $0.0, ascending: $0.1) }
    return ids(try DocumentQuery(FindRequest(sort: sort)).run(documents.reversed()))
  }

  @Test("values of different kinds sort by kind, a missing field as null, an empty array before all")
  func kinds() throws {
    let bodies = [
      #"{"a":[]}"#, "{}", #"{"a":null}"#, #"{"a":-1e300}"#, #"{"a":2}"#, #"{"a":2.5}"#, #"{"a":3}"#, #"{"a":""}"#,
      #"{"a":"a"}"#, #"{"a":{}}"#, #"{"a":{"x":1}}"#, #"{"a":{"$binary":{"base64":"AQ==","subType":"00"}}}"#,
      #"{"a":{"$uuid":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}}"#, #"{"a":{"$oid":"5ed554a47527930d67194feb"}}"#,
      #"{"a":false}"#, #"{"a":true}"#, #"{"a":{"$date":{"$numberLong":"-1"}}}"#,
      #"{"a":{"$date":{"$numberLong":"0"}}}"#,
    ]
    #expect(try sorted(bodies, [("a", true)]) == Array(0..<Int64(bodies.count)))
    #expect(try sorted(bodies, [("a", false)]) == Array(0..<Int64(bodies.count)).reversed().map { $0 })
  }

  @Test("ties go by id, the way of the first field")
  func ties() throws {
    let bodies = [#"{"a":1,"b":1}"#, #"{"a":1,"b":2}"#, #"{"a":1,"b":1}"#]
    #expect(try sorted(bodies, []) == [0, 1, 2])
    #expect(try sorted(bodies, [("a", true)]) == [0, 1, 2])
    #expect(try sorted(bodies, [("a", false)]) == [2, 1, 0])
    #expect(try sorted(bodies, [("a", true), ("b", false)]) == [1, 0, 2])
    #expect(try sorted(bodies, [("_id", false)]) == [2, 1, 0])
  }

  @Test("an array sorts by its least element upwards and by its greatest downwards")
  func arrays() throws {
    let bodies = [#"{"a":[5,1]}"#, #"{"a":[3]}"#, #"{"a":[{"b":9},{"b":0}]}"#]
    #expect(try sorted(bodies, [("a", true)]) == [0, 1, 2])
    #expect(try sorted(Array(bodies.prefix(2)), [("a", false)]) == [0, 1])
    #expect(try sorted([#"{"a":[{"b":9},{"b":0}]}"#, #"{"a":{"b":5}}"#], [("a.b", true)]) == [0, 1])
  }

  @Test("skip and limit cut the sorted result, however many documents there are", arguments: [10, 5_000])
  func cut(_ count: Int64) throws {
    let documents = try (0..<count).map { try document($0, #"{"n":\#(($0 * 7919) % count)}"#) }
    func run(_ skip: Int, _ limit: Int?) throws -> [Value?] {
      let request = FindRequest(sort: [.init(path: "n", ascending: true)], limit: limit, skip: skip)
      return try DocumentQuery(request).run(documents).map { $0.body["n"] }
    }
    #expect(try run(2, 3) == [.int(2), .int(3), .int(4)])
    #expect(try run(Int(count) - 1, .max).count == 1)
    #expect(try run(Int(count), 5).isEmpty)
    #expect(try run(0, nil).count == Int(count))
    #expect(try run(0, 0).count == Int(count))
  }

  @Test("negative numbers, too many fields and mixed projections are refused")
  func refused() throws {
    for request in [
      FindRequest(limit: -1), FindRequest(skip: -1),
      FindRequest(sort: Array(repeating: .init(path: "a", ascending: true), count: 33)),
      FindRequest(projection: try parsedMap(#"{"a":1,"b":0}"#)),
      FindRequest(projection: try parsedMap(#"{"a":1,"a.b":1}"#)),
      FindRequest(projection: try parsedMap(#"{"a.b":1,"a":1}"#)),
      FindRequest(projection: try parsedMap(#"{"a":{"$slice":1}}"#)),
      FindRequest(filter: try parsedMap(#"{"a":{"$x":1}}"#)),
    ] {
      #expect(throws: NodeError.self) { try DocumentQuery(request) }
    }
  }

  @Test(
    "a projection shows what it names, or all but that",
    arguments: [
      (#"{}"#, #"{"a":1,"b":{"c":2,"d":3},"l":[{"c":4,"d":5},6]}"#),
      (#"{"a":1}"#, #"{"a":1}"#), (#"{"b.c":true}"#, #"{"b":{"c":2}}"#), (#"{"l.c":1}"#, #"{"l":[{"c":4}]}"#),
      (#"{"x":1,"a.b":1}"#, "{}"), (#"{"_id":1}"#, "{}"), (#"{"_id":0,"a":1}"#, #"{"a":1}"#),
      (#"{"a":0,"b.c":0}"#, #"{"b":{"d":3},"l":[{"c":4,"d":5},6]}"#),
      (#"{"l.c":false,"b":0.0}"#, #"{"a":1,"l":[{"d":5},6]}"#),
      (#"{"_id":0}"#, #"{"a":1,"b":{"c":2,"d":3},"l":[{"c":4,"d":5},6]}"#),
    ])
  func projection(_ fields: String, _ expected: String) throws {
    let body = try parsedMap(#"{"a":1,"b":{"c":2,"d":3},"l":[{"c":4,"d":5},6]}"#)
    #expect(try Projection(parsedMap(fields)).apply(body) == parsedMap(expected))
  }

  @Test("the id is shown unless the projection says 0")
  func shownID() throws {
    #expect(try Projection(parsedMap(#"{"a":1}"#)).showsID)
    #expect(try !Projection(parsedMap(#"{"_id":0}"#)).showsID)
    #expect(try !Projection(parsedMap(#"{"_id":0,"a":1}"#)).showsID)
  }
}
