import Replication
import Testing

@testable import Seamesh

@Suite("Merge patch and update operators")
struct DocumentEditTests {
  @Test(
    "the examples of RFC 7396, appendix A",
    arguments: [
      (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
      (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
      (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
      (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
      (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#), (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
      (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"), (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
      (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#), (#"[1,2]"#, #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
      (#"{}"#, #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ])
  func mergePatch(_ target: String, _ patch: String, _ expected: String) throws {
    #expect(try MergePatch.apply(parsed(patch), to: parsed(target)) == parsed(expected))
    if case .map(let patch) = try parsed(patch), case .map(let target) = try parsed(target) {
      #expect(try .map(MergePatch.apply(patch, to: target)) == parsed(expected))
    }
  }

  @Test(
    "$set and $unset change what their paths name",
    arguments: [
      (#"{"$set":{"a":2}}"#, #"{"a":2,"m":{"x":1},"l":[1,{"y":2}]}"#),
      (#"{"$set":{"m.z":{"w":[]}}}"#, #"{"a":1,"m":{"x":1,"z":{"w":[]}},"l":[1,{"y":2}]}"#),
      (#"{"$set":{"n.o.p":null}}"#, #"{"a":1,"m":{"x":1},"l":[1,{"y":2}],"n":{"o":{"p":null}}}"#),
      (#"{"$set":{"l.0":9,"l.1.y":8}}"#, #"{"a":1,"m":{"x":1},"l":[9,{"y":8}]}"#),
      (#"{"$set":{"l.2":3}}"#, #"{"a":1,"m":{"x":1},"l":[1,{"y":2},3]}"#),
      (#"{"$set":{"l.4.q":3}}"#, #"{"a":1,"m":{"x":1},"l":[1,{"y":2},null,null,{"q":3}]}"#),
      (
        #"{"$set":{"d":{"$date":{"$numberLong":"5"}}},"$unset":{"a":""}}"#,
        #"{"m":{"x":1},"l":[1,{"y":2}],"d":{"$date":{"$numberLong":"5"}}}"#
      ),
      (#"{"$unset":{"m.x":1}}"#, #"{"a":1,"m":{},"l":[1,{"y":2}]}"#),
      (#"{"$unset":{"l.0":1,"l.1.y":1}}"#, #"{"a":1,"m":{"x":1},"l":[null,{}]}"#),
      (#"{"$unset":{"z":1,"z.y":1,"a.b":1,"l.9":1,"l.x":1}}"#, nil),
      (#"{"$unset":{"q":1,"a.b":1,"l.9":1,"l.x":1}}"#, #"{"a":1,"m":{"x":1},"l":[1,{"y":2}]}"#),
      (#"{"$set":{}}"#, #"{"a":1,"m":{"x":1},"l":[1,{"y":2}]}"#),
    ] as [(String, String?)])
  func operators(_ update: String, _ expected: String?) throws {
    let document = try parsedMap(#"{"a":1,"m":{"x":1},"l":[1,{"y":2}]}"#)
    let update = try parsedMap(update)
    guard let expected else {
      #expect(throws: NodeError.self) { try UpdateOperators.apply(update, to: document) }
      return
    }
    #expect(try UpdateOperators.apply(update, to: document) == parsedMap(expected))
  }

  @Test(
    "updates that cannot be done are refused by name",
    arguments: [
      (#"{"$inc":{"a":1}}"#, NodeError.Code.unprocessable, "$inc"), (#"{"$push":{"a":1}}"#, .unprocessable, "$push"),
      (#"{}"#, .badRequest, "operator"), (#"{"a":1}"#, .badRequest, "“a”"), (#"{"$set":5}"#, .badRequest, "$set"),
      (#"{"$set":{"a.b":1}}"#, .unprocessable, "a.b"), (#"{"$set":{"l.x":1}}"#, .unprocessable, "l.x"),
      (#"{"$set":{"l.999999":1}}"#, .unprocessable, "l.999999"), (#"{"$set":{"_id":1}}"#, .unprocessable, "_id"),
      (#"{"$unset":{"_id.x":1}}"#, .unprocessable, "_id"), (#"{"$set":{"l.$[].y":1}}"#, .unprocessable, "$[]"),
      (#"{"$set":{"a":1},"$unset":{"a":1}}"#, .badRequest, "collide"),
      (#"{"$set":{"a":1,"a.b":1}}"#, .badRequest, "collide"),
      (#"{"$set":{"a..b":1}}"#, .badRequest, "a..b"),
    ])
  func refused(_ update: String, _ code: NodeError.Code, _ name: String) throws {
    let document = try parsedMap(#"{"a":1,"l":[1,{"y":2}]}"#)
    let update = try parsedMap(update)
    let error = #expect(throws: NodeError.self) { try UpdateOperators.apply(update, to: document) }
    #expect(error?.code == code)
    #expect(error?.message.contains(name) == true, "\(error?.message ?? "")")
  }

  @Test("an update cannot nest a document deeper than values may be")
  func depth() throws {
    func update(_ parts: Int, _ value: String) throws -> ValueMap {
      try parsedMap(#"{"$set":{"\#(Array(repeating: "a", count: parts).joined(separator: "."))":\#(value)}}"#)
    }
    #expect(throws: Never.self) { try UpdateOperators.apply(update(64, "1"), to: ValueMap()) }
    #expect(throws: Never.self) { try UpdateOperators.apply(update(63, "[]"), to: ValueMap()) }
    #expect(throws: NodeError.self) { try UpdateOperators.apply(update(64, "[]"), to: ValueMap()) }
    #expect(throws: NodeError.self) { try UpdateOperators.apply(update(65, "1"), to: ValueMap()) }
  }
}
