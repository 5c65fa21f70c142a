import Testing

@testable import SeameshCommand

@Suite("Patches, ids and events")
struct PatchTests {
  private func patch(_ json: String?, set: [String] = [], unset: [String] = []) throws(Failure) -> [String] {
    let patch = try Patch(json: json, set: set, unset: unset)
    return [patch.json, patch.contentType == "application/json" ? "operators" : "merge"]
  }

  @Test("JSON is sent as it was typed: operators by their $, otherwise a merge patch")
  func typed() throws {
    #expect(try patch(#"{"b":1, "a":null}"#) == [#"{"b":1, "a":null}"#, "merge"])
    #expect(try patch(#"{"$set":{"a":1} }"#) == [#"{"$set":{"a":1} }"#, "operators"])
  }

  @Test("--set and --unset make a merge patch where that says the same")
  func plain() throws {
    #expect(
      try patch(nil, set: ["a=1", "c=\"x\"", "d=[1]"], unset: ["e"])
        == [#"{"a":1,"c":"x","d":[1],"e":null}"#, "merge"])
  }

  @Test("a null, an object or a path of several fields needs operators")
  func operators() throws {
    #expect(
      try patch(nil, set: ["a.b=1"], unset: ["a.e"]) == [#"{"$set":{"a.b":1},"$unset":{"a.e":""}}"#, "operators"])
    #expect(try patch(nil, set: ["a=null"]) == [#"{"$set":{"a":null}}"#, "operators"])
    #expect(try patch(nil, set: ["a={}"], unset: ["b"]) == [#"{"$set":{"a":{}},"$unset":{"b":""}}"#, "operators"])
    #expect(try patch(nil, set: ["crew.0.name=\"x\""]) == [#"{"$set":{"crew.0.name":"x"}}"#, "operators"])
    #expect(try patch(nil, unset: ["crew.0"]) == [#"{"$unset":{"crew.0":""}}"#, "operators"])
  }

  @Test("what is no patch is a mistake of usage")
  func refusals() {
    let bad: [(String?, [String], [String])] = [
      (nil, [], []), ("{}", ["a=1"], []), ("[]", [], []), ("{", [], []), (#"{"$set":{},"a":1}"#, [], []),
      (nil, ["a"], []), (nil, ["a=x"], []), (nil, ["a..b=1"], []), (nil, [], [""]),
    ]
    for (json, set, unset) in bad {
      #expect(throws: Failure.self, "\(json ?? "") \(set) \(unset)") { try patch(json, set: set, unset: unset) }
    }
  }

  @Test("an id is what was typed, or a value of the type that is named")
  func ids() throws {
    #expect(try NodePath.id("{\"$oid\" : 1", type: "string") == #""{\"$oid\" : 1""#)
    #expect(try NodePath.id(" {", type: nil) == " {" && NodePath.id("\"a\"", type: nil) == "\"a\"")
    #expect(try NodePath.id("{a", type: "string") == "\"{a\"")
    #expect(try NodePath.id("5ed554a47527930d67194feb", type: "oid") == #"{"$oid":"5ed554a47527930d67194feb"}"#)
    #expect(try NodePath.id("7", type: "int") == #"{"$numberLong":"7"}"#)
    for (text, type) in [("xyz", "oid"), ("7.5", "int"), ("", "oid"), ("{\"$oid\":\"x", nil), ("\"", nil)]
      as [(String, String?)]
    {
      #expect(throws: Failure.self) { try NodePath.id(text, type: type) }
    }
    #expect(NodePath.document("a=b", "c d", id: "x/é") == "/v1/partitions/a%3Db/collections/c%20d/documents/x%2F%C3%A9")
  }

  @Test("events are read from a stream cut anywhere")
  func events() {
    let text = ": hello\n\nid: c1\nevent: snapshot\ndata: {\"a\":1}\n\nevent: x\r\ndata: 1\r\ndata:2\r\n\r\n"
    for size in 1...text.utf8.count {
      var stream = EventStream()
      var events: [EventStream.Event] = []
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        events += stream.append(rest.prefix(size))
        rest = rest.dropFirst(size)
      }
      #expect(
        events == [
          .init(name: "snapshot", id: "c1", data: "{\"a\":1}"), .init(name: "x", id: nil, data: "1\n2"),
        ])
    }
  }
}
