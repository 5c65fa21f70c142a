import Replication
import Seamesh
import Testing

@testable import LocalAPI

@Suite("Reading what is sent")
struct JSONTests {
  private func problem(_ body: () throws(Problem) -> Void) -> Problem? {
    do throws(Problem) {
      try body()
      return nil
    } catch {
      return error
    }
  }

  private let map: ValueMap = {
    var map = ValueMap()
    (map["s"], map["n"], map["m"], map["a"]) = (.string("x"), .int(2), .map(ValueMap()), .array([]))
    (map["b"], map["z"], map["d"]) = (.bool(true), .null, .double(1.5))
    return map
  }()

  @Test("members are read by their types; a wrong one, a missing and an unknown one are refused by name")
  func members() throws {
    let members = try Members(map, of: "a thing", allowed: ["s", "n", "m", "a", "b", "z", "d", "none"])
    #expect(try members.string("s") == "x" && members.count("n") == 2 && members.flag("b"))
    #expect(try members.object("m").isEmpty && members.array("a").isEmpty)
    #expect(try members.optionalString("z") == nil && members.optionalObject("none") == nil)
    #expect(try members.count("none") == nil && !members.flag("z"))
    let refusals: [(Problem?, String)] = [
      (problem { () throws(Problem) in _ = try members.string("none") }, "needs the member none"),
      (problem { () throws(Problem) in _ = try members.string("n") }, "n of a thing must be a string"),
      (problem { () throws(Problem) in _ = try members.object("s") }, "s of a thing must be an object"),
      (problem { () throws(Problem) in _ = try members.object("z") }, "needs the member z"),
      (problem { () throws(Problem) in _ = try members.array("m") }, "m of a thing must be an array"),
      (problem { () throws(Problem) in _ = try members.flag("n") }, "n of a thing must be true or false"),
      (problem { () throws(Problem) in _ = try members.count("d") }, "d of a thing must be an integer"),
      (
        problem { () throws(Problem) in _ = try Members(map, of: "a thing", allowed: ["s"]) },
        "no member a; it takes: s"
      ),
    ]
    for (problem, text) in refusals {
      #expect(problem?.kind == .unprocessable && problem?.detail.contains(text) == true, "\(problem?.detail ?? "none")")
    }
  }

  @Test("an id and the segment that names it are one another's inverse")
  func segments() throws {
    let ids: [Value] = [
      .string("a"), .string("a/b c"), .string("{x"), .string("\"q\""), .string(" "), .int(-7), .int(.max),
      .objectID(ObjectID(high: 1, low: 2)), .string("7"),
    ]
    for id in ids { #expect(try DocumentID.parse(segment: DocumentID.segment(id)) == id, "\(id)") }
    #expect(Set(ids.map(DocumentID.segment)).count == ids.count)
  }

  @Test("whatever a name holds, its percent-encoded form is one segment that decodes to it")
  func percentEncoding() throws {
    for name in ["a", "a/b", "%2F", "a b+c", "é", "e\u{301}", "?#&=", "..", "\u{1F6A2}"] {
      let target = try RequestTarget(raw: "/x/" + percentEncoded(Text(name)))
      #expect(target.segments == ["x", Text(name)], "\(name)")
    }
    #expect(percentEncoded("a-._~Z9/ ") == "a-._~Z9%2F%20")
  }

  @Test("query parameters are decoded, + being a space, and more than a few are refused")
  func queryParameters() throws {
    let target = try RequestTarget(raw: "/x?a=1+2&b=%2B&c&d=&e=x=y")
    #expect(["a", "b", "c", "d", "e"].map { target[parameter: $0] } == ["1 2", "+", "", "", "x=y"])
    #expect(target[parameter: "none"] == nil)
    let many = (0...ServerLimit.queryParameters).map { "p\($0)=1" }.joined(separator: "&")
    let refused = problem { () throws(Problem) in _ = try RequestTarget(raw: "/x?" + many) }
    #expect(refused?.kind == .badRequest && refused?.limit == ServerLimit.queryParameters)
    for raw in ["x", "", "http://localhost/v1", "*"] {
      #expect(problem { () throws(Problem) in _ = try RequestTarget(raw: raw) }?.kind == .badRequest, "\(raw)")
    }
  }

  @Test("a problem of JSON keeps the place and the limit that were passed")
  func problemsOfJSON() {
    let deep = String(repeating: "[", count: 200)
    let problem = problem { () throws(Problem) in _ = try JSON.value(Text("\n " + deep)) }
    #expect(problem?.kind == .unprocessable && problem?.limit == Value.depthLimit && problem?.unit == "levels")
    #expect(problem?.place?.line == 2)
    #expect(problem?.value.asMap?["offset"] != nil && problem?.value.asMap?["unit"] == .string("levels"))
  }
}
