import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Extended JSON: writing")
struct JSONWriteTests {
  @Test(
    "values have their relaxed form",
    arguments: [
      (.int(-5), "-5"), (.double(3), "3.0"), (.double(-0.0), "-0.0"), (.double(1e16), "1e+16"), (.null, "null"),
      (.date(0), #"{"$date":"1970-01-01T00:00:00Z"}"#),
      (.date(1_591_039_140_913), #"{"$date":"2020-06-01T19:19:00.913Z"}"#),
      (.date(253_402_300_799_999), #"{"$date":"9999-12-31T23:59:59.999Z"}"#),
      (.date(253_402_300_800_000), #"{"$date":{"$numberLong":"253402300800000"}}"#),
      (.date(-1), #"{"$date":{"$numberLong":"-1"}}"#),
      (.bytes([1]), #"{"$binary":{"base64":"AQ==","subType":"00"}}"#),
      (.string("a\"\\\u{8}\u{1}\n\u{7f}\u{9f}é"), #""a\"\\\b\u0001\n\u007f\u009fé""#),
      (.blob(of: 5), #"{"$blob":{"hash":"\#(zeros)","size":5,"type":"a/b"}}"#),
      (
        .blob(of: 262_145, listHash: .zero),
        #"{"$blob":{"hash":"\#(zeros)","size":262145,"type":"a/b","list":"\#(zeros)"}}"#
      ),
      (map(["b": .array([]), "a": map([:])]), #"{"a":{},"b":[]}"#),
      (map(["$set": .int(1)]), #"{"$literal":{"$set":1}}"#),
      (.array([map(["$set": .int(1), "a": map(["$oid": .int(1)])])]), #"[{"$set":1,"a":{"$literal":{"$oid":1}}}]"#),
    ] as [(Value, String)])
  func form(_ value: Value, _ text: String) { #expect(ExtendedJSON.text(value) == text) }

  @Test("the pretty form breaks lines at maps and at arrays of them")
  func pretty() {
    let value = map([
      "at": .array([.double(1), .double(2)]), "crew": .array([map(["name": .string("x")])]), "e": map([:]),
    ])
    let expected = """
      {
        "at": [1.0,2.0],
        "crew": [
          {
            "name": "x"
          }
        ],
        "e": {}
      }
      """
    #expect(ExtendedJSON.text(value, pretty: true) == expected)
  }

  @Test("every value reads back as it was", arguments: 0..<20 as Range<UInt64>)
  func roundTrip(_ seed: UInt64) throws {
    var values = RandomValues(seed: seed)
    for _ in 0..<200 {
      let value = values.value()
      for pretty in [false, true] {
        var text: [UInt8] = []
        ExtendedJSON.write(value, into: &text, pretty: pretty)
        #expect(try ExtendedJSON.parse(text) == value, "\(String(decoding: text, as: UTF8.self))")
      }
    }
  }

  @Test("every day of 400 years and of the range's ends has one date")
  func dates() {
    for day in Array(0..<146_097) + [2_932_896] {
      let milliseconds = Int64(day) * CalendarTime.millisecondsPerDay + 86_399_999
      #expect(CalendarTime.text(milliseconds).flatMap(CalendarTime.milliseconds) == milliseconds)
    }
  }
}

@Suite("Extended JSON: damaged input")
struct JSONDamageTests {
  static let document = """
    {"_id":{"$oid":"5ed554a47527930d67194feb"},"name":"Sofía \\u00e9\\ud83d\\udc1f","location":[-87.121875,5.3e1],
     "when":{"$date":"2020-06-01T19:19:00.913Z"},"raw":{"$binary":{"base64":"AQID","subType":"00"}},"n":{"$numberLong":
     "-12"},"crew":[{"name":"x","license":null,"ok":true},{}],"far":{"$date":{"$numberLong":"-5"}},"l":{"$literal":{}}}
    """

  @Test("a document cut at any byte is refused")
  func truncations() throws {
    let text = Array(JSONDamageTests.document.utf8)
    #expect(throws: Never.self) { try ExtendedJSON.parse(text) }
    for count in text.indices {
      #expect(throws: JSONError.self) { try ExtendedJSON.parse(text[..<count]) }
    }
  }

  @Test("what mutations leave readable reads back, and nothing traps", arguments: 0..<8 as Range<UInt64>)
  func mutations(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let original = Array(JSONDamageTests.document.utf8)
    let pieces = ["{", "}", "[", "]", "\"", ":", ",", "\\", "\\u0000", "$oid", "1e999", "-", "\u{e9}", "null", "0"]
    var readable = 0
    for _ in 0..<2000 {
      var text = original
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<text.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: text[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: text.remove(at: place)
        case 2: text.insert(contentsOf: (pieces.randomElement(using: &random) ?? "").utf8, at: place)
        default: text.removeSubrange(place..<min(text.count, place + 9))
        }
        if text.isEmpty { text = [0x20] }
      }
      guard let value = try? ExtendedJSON.parse(text) else { continue }
      readable += 1
      #expect(try ExtendedJSON.parse(Array(ExtendedJSON.text(value).utf8)) == value)
    }
    #expect(readable > 0)
  }
}

/// 32 bytes in hexadecimal.
private let zeros = String(repeating: "00", count: 32)
