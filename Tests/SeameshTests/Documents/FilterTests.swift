import Foundation
import Replication
import Testing

@testable import Seamesh

@Suite("Filters")
struct FilterTests {
  static let sample = """
    {"name":"Sofía","age":30,"half":0.5,"big":9007199254740993,"none":null,"draft":true,
     "vessel":{"name":"MARÍA DEL MAR","permit":"17"},"tags":["a","b"],"at":[[1,2],[3,4]],
     "crew":[{"name":"x","license":"1"},{"name":"y"},5],"empty":[],"when":{"$date":"2020-06-01T00:00:00Z"}}
    """

  @Test(
    "filters that match",
    arguments: [
      #"{}"#, #"{"name":"Sofía"}"#, #"{"age":30}"#, #"{"age":30.0}"#, #"{"half":0.5}"#, #"{"none":null}"#,
      #"{"missing":null}"#, #"{"vessel.missing":null}"#, #"{"age.deep":null}"#, #"{"_id":7}"#,
      #"{"_id":{"$in":[6,7]}}"#,
      #"{"vessel.name":"MARÍA DEL MAR"}"#, #"{"vessel":{"permit":"17","name":"MARÍA DEL MAR"}}"#,
      // Arrays: as a whole, by element, by index, through maps in them.
      #"{"tags":"a"}"#, #"{"tags":["a","b"]}"#, #"{"tags.1":"b"}"#, #"{"at":[3,4]}"#, #"{"at.1.0":3}"#, #"{"at.0":2}"#,
      #"{"crew.name":"y"}"#, #"{"crew.0.license":"1"}"#, #"{"crew.license":null}"#, #"{"crew":5}"#, #"{"empty":[]}"#,
      #"{"crew.license":{"$exists":true}}"#, #"{"empty.x":{"$exists":false}}"#, #"{"tags.2":{"$exists":false}}"#,
      #"{"age":{"$gt":29}}"#, #"{"age":{"$gte":30,"$lt":30.5}}"#, #"{"age":{"$lte":30}}"#, #"{"name":{"$gt":"A"}}"#,
      #"{"big":{"$gt":9007199254740992.0}}"#, #"{"tags":{"$gt":"a"}}"#, #"{"none":{"$gte":null}}"#,
      #"{"when":{"$lt":{"$date":"2020-06-01T00:00:00.001Z"}}}"#,
      #"{"age":{"$ne":31}}"#, #"{"missing":{"$ne":1}}"#, #"{"age":{"$nin":[1,2]}}"#, #"{"missing":{"$in":[null]}}"#,
      #"{"tags":{"$in":["z","b"]}}"#, #"{"none":{"$exists":true}}"#, #"{"missing":{"$exists":false}}"#,
      #"{"missing":{"$exists":0}}"#,
      #"{"$and":[{"age":30},{"draft":true}]}"#, #"{"$or":[{"age":1},{"draft":true}]}"#,
      #"{"$nor":[{"age":1},{"draft":false}]}"#, #"{"age":{"$not":{"$gt":30}}}"#, #"{"age":{"$not":{"$gt":1,"$lt":2}}}"#,
      #"{"missing":{"$not":{"$gt":1}}}"#,
      #"{"vessel.name":{"$contains":"María","$fold":"c"}}"#, #"{"vessel.name":{"$contains":"maria","$fold":"cd"}}"#,
      #"{"vessel.name":{"$contains":"MARIA","$fold":"d"}}"#, #"{"vessel.name":{"$contains":"DEL"}}"#,
      #"{"vessel.name":{"$contains":""}}"#, #"{"crew.name":{"$contains":"Y","$fold":"dc"}}"#,
      #"{"name":{"$not":{"$contains":"zz"}}}"#, #"{"name":{"$contains":"fi\u0301a"  ,"$fold":"cd"}}"#,
    ])
  func matches(_ filter: String) throws {
    #expect(try Filter(parsedMap(filter)).matches(id: .int(7), parsedMap(FilterTests.sample)))
  }

  @Test(
    "filters that do not match",
    arguments: [
      #"{"name":"Sofi\u0301a"}"#, #"{"age":"30"}"#, #"{"draft":false}"#, #"{"none":false}"#, #"{"missing":false}"#,
      #"{"name":null}"#, #"{"_id":8}"#, #"{"_id":"7"}"#, #"{"vessel":{"name":"MARÍA DEL MAR"}}"#,
      #"{"tags":["b","a"]}"#,
      #"{"tags":["a"]}"#, #"{"tags.2":"b"}"#, #"{"tags.01":"b"}"#, #"{"crew.name":"z"}"#, #"{"empty.x":null}"#,
      #"{"tags.x":null}"#, #"{"age":{"$gt":30}}"#, #"{"age":{"$lt":"a"}}"#, #"{"none":{"$gt":null}}"#,
      #"{"missing":{"$lt":5}}"#, #"{"draft":{"$gt":0}}"#, #"{"big":9007199254740992.0}"#, #"{"tags":{"$ne":"a"}}"#,
      #"{"tags":{"$nin":["a"]}}"#, #"{"missing":{"$nin":[null]}}"#, #"{"missing":{"$exists":true}}"#,
      #"{"$and":[{"age":30},{"draft":false}]}"#, #"{"$or":[{"age":1},{"draft":false}]}"#,
      #"{"$nor":[{"age":1},{"draft":true}]}"#, #"{"age":{"$not":{"$gte":30}}}"#, #"{"age":{"$gt":1,"$lt":2}}"#,
      #"{"vessel.name":{"$contains":"maria"}}"#, #"{"vessel.name":{"$contains":"MARIA","$fold":"c"}}"#,
      #"{"vessel.name":{"$contains":"maria","$fold":"d"}}"#, #"{"age":{"$contains":"3"}}"#, #"{"age":{"$in":[]}}"#,
    ])
  func doesNotMatch(_ filter: String) throws {
    #expect(try !Filter(parsedMap(filter)).matches(id: .int(7), parsedMap(FilterTests.sample)))
  }

  @Test("false matches neither null nor a missing field")
  func threeValuedDraft() throws {
    let filter = try Filter(parsedMap(#"{"draft":false}"#))
    #expect(try filter.matches(id: .int(1), parsedMap(#"{"draft":false}"#)))
    #expect(try !filter.matches(id: .int(1), parsedMap(#"{"draft":null}"#)))
    #expect(try !filter.matches(id: .int(1), parsedMap(#"{}"#)))
  }

  @Test(
    "unknown operators are refused by name, wrong forms with the field",
    arguments: [
      (#"{"a":{"$regex":"x"}}"#, NodeError.Code.unprocessable, "$regex"),
      (#"{"$where":"x"}"#, .unprocessable, "$where"), (#"{"a":{"$not":{"$size":1}}}"#, .unprocessable, "$size"),
      (#"{"$or":[{"$expr":1}]}"#, .unprocessable, "$expr"), (#"{"a":{"$fold":"cd"}}"#, .unprocessable, "$fold"),
      (#"{"a":{"$gt":1,"b":2}}"#, .badRequest, "“b”"), (#"{"$and":[]}"#, .badRequest, "$and"),
      (#"{"$or":{"a":1}}"#, .badRequest, "$or"), (#"{"$nor":[1]}"#, .badRequest, "$nor"),
      (#"{"a":{"$in":1}}"#, .badRequest, "$in"), (#"{"a":{"$exists":"yes"}}"#, .badRequest, "$exists"),
      (#"{"a":{"$not":5}}"#, .badRequest, "$not"), (#"{"a":{"$contains":5}}"#, .badRequest, "$contains"),
      (#"{"a":{"$contains":"x","$fold":"x"}}"#, .badRequest, "$fold"), (#"{"a..b":1}"#, .badRequest, "a..b"),
      (#"{"":1}"#, .badRequest, "path"),
    ])
  func refused(_ filter: String, _ code: NodeError.Code, _ name: String) throws {
    let map = try parsedMap(filter)
    let error = #expect(throws: NodeError.self) { try Filter(map) }
    #expect(error?.code == code)
    #expect(error?.message.contains(name) == true, "\(error?.message ?? "")")
  }

  @Test("who looks for a regular expression is told what looks for a text within a text, and nobody else")
  func regularExpression() throws {
    func message(_ filter: String) throws -> String {
      let map = try parsedMap(filter)
      return try #require(#expect(throws: NodeError.self) { try Filter(map) }).message
    }
    #expect(
      try message(#"{"a":{"$regex":"x"}}"#).hasSuffix(
        "For a text within a text: $contains, with $fold for case and diacritics."))
    #expect(try !message(#"{"a":{"$size":1}}"#).contains("within"))
  }

  @Test("a DBRef is a value, not an object of operators")
  func reference() throws {
    let filter = try Filter(parsedMap(#"{"mpa":{"$ref":"MPA","$id":1}}"#))
    #expect(try filter.matches(id: .int(1), parsedMap(#"{"mpa":{"$id":1,"$ref":"MPA"}}"#)))
  }

  @Test("the ids that can match are known where the filter names them")
  func possibleIDs() throws {
    #expect(try Filter(parsedMap(#"{"_id":"x","a":1}"#)).possibleIDs == [.string("x")])
    let several = try Filter(parsedMap(#"{"_id":{"$in":["x","y","x",1,1.0]}}"#)).possibleIDs ?? []
    #expect(several.count == 3 && Set(several) == [.string("x"), .string("y"), .int(1)])
    // Numbers find one another, and no id is null, true or a map.
    #expect(try Filter(parsedMap(#"{"_id":1.0}"#)).possibleIDs == [.int(1)])
    #expect(try Filter(parsedMap(#"{"_id":{"$in":[1.5,null,true,{"a":1}]}}"#)).possibleIDs == [])
    #expect(try Filter(parsedMap(#"{"$and":[{"a":1},{"$and":[{"_id":"x"}]}]}"#)).possibleIDs == [.string("x")])
    #expect(try Filter(parsedMap(#"{"_id":{"$ne":"x"}}"#)).possibleIDs == nil)
    #expect(try Filter(parsedMap(#"{"_id.a":"x"}"#)).possibleIDs == nil)
    #expect(try Filter(parsedMap(#"{"$or":[{"_id":"x"}]}"#)).possibleIDs == nil)
  }

  @Test(
    "folding makes texts equal that differ in case and marks",
    arguments: [
      ("Éa", "e\u{301}A", true), ("STRASSE", "straße", true), ("ΣΑΣ", "σας", true), ("Ñandú", "nandu", true),
      ("İx", "ix", true), ("ﬁ", "FI", true), ("a", "b", false), ("ø", "o", false), ("का", "क", false),
    ])
  func folding(_ a: String, _ b: String, _ equal: Bool) {
    let folding: TextFolding = [.letterCase, .diacritics]
    #expect((folding.fold(Text(a)) == folding.fold(Text(b))) == equal)
  }

  /// Of letters that both the system's and Foundation's tables of Unicode know.
  @Test("text is taken apart as Foundation takes it apart", arguments: [[], .diacritics] as [TextFolding])
  func decomposition(without marks: TextFolding) {
    let ranges: [ClosedRange<UInt32>] = [
      0x80...0x33ff, 0xac00...0xacff, 0xf900...0xfeff, 0x1_1000...0x1_1fff, 0x1_d100...0x1_d1ff,
    ]
    for scalar in ranges.joined().compactMap(Unicode.Scalar.init) {
      // Foundation takes three Tibetan vowels apart without bringing their parts into order with the marks around them.
      guard let age = scalar.properties.age, age <= (14, 0), ![0xf73, 0xf75, 0xf81].contains(scalar.value) else {
        continue
      }
      // Behind marks in an order that is not canonical, and before another one.
      let text = "q\u{307}\u{323}" + String(Character(scalar)) + "\u{327}"
      let expected = text.decomposedStringWithCanonicalMapping.unicodeScalars.filter {
        marks.isEmpty || $0.properties.canonicalCombiningClass == .notReordered
      }
      let folded = marks.union(.letterCase).fold(Text(text))
      let lowered = expected.flatMap { Array($0.properties.uppercaseMapping.lowercased().utf8) }
      #expect(folded == lowered, "U+\(String(scalar.value, radix: 16))")
    }
  }

  @Test("a text of marks alone is folded as soon as any other")
  func manyMarks() {
    let count = 100_000
    let text = Text(String(repeating: "\u{301}", count: count) + String(repeating: "\u{323}", count: count))
    let sorted = String(repeating: "\u{323}", count: count) + String(repeating: "\u{301}", count: count)
    // Not shown side by side where they differ: that would take minutes.
    let isSorted = TextFolding.letterCase.fold(text) == Array(sorted.utf8)
    #expect(isSorted)
    #expect(TextFolding.diacritics.fold(text) == [])
  }
}
