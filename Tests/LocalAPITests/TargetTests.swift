import LocalAPI
import LocalAPITestSupport
import Replication
import Testing

@Suite("Paths, names and ids")
struct TargetTests {
  let server: TestServer
  let documents = "/v1/partitions/p/collections/c/documents/"

  init() throws { server = try TestServer() }

  @Test(
    "an id in a path is the string it spells, byte for byte",
    arguments: [
      ("a%2Fb", "a/b"), ("a%20b", "a b"), ("a+b", "a+b"), ("..", ".."), ("%2E%2E%2Fetc", "../etc"),
      ("a%3Fx%3D1", "a?x=1"),
      ("5ed554a47527930d67194feb", "5ed554a47527930d67194feb"), ("%C3%A9", "\u{e9}"), ("e%CC%81", "e\u{301}"),
      ("%22a%22", "a"), ("%22%7Ba%22", "{a"),
    ])
  func stringIDs(segment: String, id: String) throws {
    #expect(try server.ask("PUT", documents + segment, "{}").status == 201)
    let stored = server.node.ids
    #expect(stored == [.string(Text(id))])
  }

  @Test("two spellings of one letter are two ids")
  func canonicalEquivalence() throws {
    #expect(try server.ask("PUT", documents + "%C3%A9", "{}").status == 201)
    #expect(try server.ask("PUT", documents + "e%CC%81", "{}").status == 201)
    #expect(server.node.ids.count == 2)
  }

  @Test("an id segment that begins with a brace is Extended JSON")
  func typedIDs() throws {
    let id = ObjectID(high: 0x5ed5_54a4_7527_930d, low: 0x6719_4feb)
    #expect(try server.ask("PUT", documents + "%7B%22$oid%22:%225ed554a47527930d67194feb%22%7D", "{}").status == 201)
    #expect(try server.ask("PUT", documents + "%7B%22$numberLong%22:%227%22%7D", "{}").status == 201)
    #expect(Set(server.node.ids) == [.objectID(id), .int(7)])
    for other in [
      "%7B%22a%22:1%7D", "%7B%22$date%22:%222020-01-01T00:00:00Z%22%7D", "%7B%22$numberDouble%22:%221.5%22%7D",
    ] {
      let refused = try server.ask("PUT", documents + other, "{}")
      #expect(refused.status == 422 && refused.detail == "an id is a string, an integer, an ObjectId or a UUID")
    }
    #expect(try server.ask("PUT", documents + "%7Bnot", "{}").status == 400)
  }

  @Test(
    "a path that cannot be decoded is refused and reaches no document",
    arguments: ["a%00b", "%00", "%ff", "%", "%4", "%zz", "", "%C0%80", "%ED%A0%80"])
  func badSegments(segment: String) throws {
    let answer = try server.ask("PUT", documents + segment, "{}")
    #expect(answer.status == 400)
    #expect(answer.headers["content-type"] == "application/problem+json")
    #expect(server.node.writes == 0)
  }

  @Test("bytes that are no UTF-8 are refused where they come as they are, too; others name what they name escaped")
  func rawBytes() throws {
    func put(_ segment: [UInt8]) throws -> Int {
      let connection = try Connection(unixSocket: server.server.endpoints.socket)
      connection.send(
        Array("PUT \(documents)".utf8) + segment
          + Array(
            " HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
              .utf8))
      return try connection.readAnswer().status
    }
    for byte in [0xE8, 0xE9, 0xFF] as [UInt8] { #expect(try put(Array("caf".utf8) + [byte]) == 400) }
    #expect(server.node.writes == 0)
    #expect(try put(Array("café".utf8)) == 201)
    #expect(try server.ask("GET", documents + "caf%C3%A9").status == 200)
  }

  @Test("an id of as many bytes as a change can hold is taken, one of more refused with the limit")
  func longIDs() throws {
    #expect(try server.ask("PUT", documents + String(repeating: "%61", count: 1_021), "{}").status == 201)
    let answer = try server.ask("PUT", documents + String(repeating: "%C3%A9", count: 511), "{}")
    #expect(answer.status == 422)
    #expect(answer.json["limit"] == .int(1_021))
    #expect(try server.ask("POST", "/v1/partitions/p/collections/c/documents", "{\"_id\":\"\"}").status == 422)
  }

  @Test("a partition's name has 1 to 255 bytes and no control characters")
  func partitionNames() throws {
    func status(_ name: String) throws -> Int {
      try server.ask("PUT", "/v1/partitions/\(name)/collections/c/documents/a", "{}").status
    }
    #expect(try status("") == 400)
    #expect(try status("a%0Ab") == 422)
    #expect(try status(String(repeating: "x", count: 256)) == 422)
    #expect(try status(String(repeating: "x", count: 255)) == 201)
  }

  @Test("what is not served answers 404, another method 405 with those there are")
  func unknown() throws {
    #expect(try server.ask("GET", "/v2/status").status == 404)
    #expect(try server.ask("GET", "/").status == 400)
    #expect(try server.ask("GET", "/v1/partitions/p/history").status == 404)
    #expect(try server.ask("POST", "/v1/blobs", "{}").status == 404)
    let wrong = try server.ask("DELETE", "/v1/status")
    #expect(wrong.status == 405)
    #expect(wrong.headers["allow"] == "GET")
    #expect(try server.ask("OPTIONS", documents + "a").status == 405)
  }

  @Test("a query parameter that is unknown, doubled or not true or false is refused")
  func queries() throws {
    #expect(try server.ask("PUT", documents + "a?erase=true", "{}").status == 400)
    #expect(try server.ask("PUT", documents + "a?keepAbsent=true&keepAbsent=true", "{}").status == 400)
    #expect(try server.ask("PUT", documents + "a?keepAbsent=yes", "{}").status == 400)
    #expect(try server.ask("GET", "/v1/status?x").status == 400)
  }

  @Test(
    "JSON that cannot be read is refused with its place",
    arguments: [
      ("{\n \"a\": nope}", 400, 2, 7), ("{\"a\":1,\"a\":2}", 400, 1, 8), ("", 400, 1, 1), ("[1]", 400, 0, 0),
      ("{\"a\":\"\\ud800\"}", 400, 1, 7), ("{\"$set\":{}}", 422, 1, 2), ("{\"a\":1e999}", 422, 1, 6),
    ])
  func garbage(body: String, status: Int, line: Int, column: Int) throws {
    let answer = try server.ask("PUT", documents + "a", body)
    #expect(answer.status == status)
    #expect(answer.json["line"] == (line == 0 ? nil : .int(Int64(line))), "\(answer.text)")
    #expect(answer.json["column"] == (column == 0 ? nil : .int(Int64(column))), "\(answer.text)")
    #expect(server.node.writes == 0)
  }
}
