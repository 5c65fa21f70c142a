import Replication
import Testing

@testable import Wire

/// Text that must parse, and the value that it must give.
struct Accepted: CustomTestStringConvertible, Sendable {
  let text: String
  let value: Value
  init(_ text: String, _ value: Value) { (self.text, self.value) = (text, value) }
  var testDescription: String { text }
}

/// Text that must be refused, why, and where.
struct Refused: CustomTestStringConvertible, Sendable {
  let text: String
  let kind: JSONError.Kind
  let offset: Int
  let path: String
  init(_ text: String, _ kind: JSONError.Kind, at offset: Int, _ path: String = "") {
    (self.text, self.kind, self.offset, self.path) = (text, kind, offset, path)
  }
  var testDescription: String { text }
}

func map(_ entries: KeyValuePairs<Text, Value>) -> Value {
  var map = ValueMap()
  for (key, value) in entries { map[key] = value }
  return .map(map)
}

private let objectID = ObjectID(high: 0x5ed5_54a4_7527_930d, low: 0x6719_4feb)
private let uuid = UUIDValue(high: 0xf81d_4fae_7dec_11d0, low: 0xa765_00a0_c91e_6bf6)
private let sample = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"

@Suite("Extended JSON: parsing")
struct JSONParseTests {
  static let accepted: [Accepted] = [
    Accepted("\u{feff} null", .null),
    Accepted("null", .null), Accepted(" true ", .bool(true)), Accepted("\r\n\tfalse", .bool(false)),
    Accepted("0", .int(0)), Accepted("-0", .int(0)), Accepted("-17", .int(-17)),
    Accepted("9223372036854775807", .int(.max)), Accepted("-9223372036854775808", .int(.min)),
    Accepted("0.0", .double(0)), Accepted("-0.0", .double(-0.0)), Accepted("3.0", .double(3)),
    Accepted("1e3", .double(1000)), Accepted("1E+3", .double(1000)), Accepted("25e-1", .double(2.5)),
    Accepted("-87.121875", .double(-87.121875)), Accepted("5e-324", .double(.leastNonzeroMagnitude)),
    Accepted("1e-400", .double(0)), Accepted("0e99999999999999999999", .double(0)),
    Accepted("1.7976931348623157e308", .double(.greatestFiniteMagnitude)),
    Accepted("0.1000000000000000055511151231257827", .double(0.1)),
    Accepted("123456789012345678901234567890.0", .double(123456789012345678901234567890.0)),
    Accepted("9007199254740993.0", .double(9007199254740992)),
    Accepted(#""""#, .string("")), Accepted(#""é🐟""#, .string("é🐟")),
    Accepted(#""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{c}\n\r\t")),
    Accepted(#""a\u00e9\ud83d\udc1fb""#, .string("aé🐟b")), Accepted(#""\u0000""#, .string("\0")),
    Accepted("\"\u{7f}\u{2028}\"", .string("\u{7f}\u{2028}")),
    Accepted("[]", .array([])), Accepted("[ 1 , [ ] , \"x\" ]", .array([.int(1), .array([]), .string("x")])),
    Accepted("{}", map([:])), Accepted(#"{"":1}"#, map(["": .int(1)])),
    Accepted(#"{"b":1,"a":{"c":[2]}}"#, map(["a": map(["c": .array([.int(2)])]), "b": .int(1)])),
    Accepted(#"{"$oid":"5ed554a47527930d67194feb"}"#, .objectID(objectID)),
    Accepted(#"{ "$oid" : "5ED554A47527930D67194FEB" }"#, .objectID(objectID)),
    Accepted(#"{"\u0024oid":"5ed554a47527930d67194feb"}"#, .objectID(objectID)),
    Accepted(#"{"$date":"2020-06-01T19:19:00.913Z"}"#, .date(1_591_039_140_913)),
    Accepted(#"{"$date":"2020-06-01T21:19:00.913+02:00"}"#, .date(1_591_039_140_913)),
    Accepted(#"{"$date":"2020-06-01T14:49:00.913000000-0430"}"#, .date(1_591_039_140_913)),
    Accepted(#"{"$date":"2020-02-29T00:00:00Z"}"#, .date(1_582_934_400_000)),
    Accepted(#"{"$date":"1969-12-31T23:59:59.9Z"}"#, .date(-100)),
    Accepted(#"{"$date":"0001-01-01T00:00:00Z"}"#, .date(-62_135_596_800_000)),
    Accepted(#"{"$date":"9999-12-31T23:59:59.999Z"}"#, .date(253_402_300_799_999)),
    Accepted(#"{"$date":{"$numberLong":"-9223372036854775808"}}"#, .date(.min)),
    Accepted(#"{"$binary":{"base64":"AQID","subType":"00"}}"#, .bytes([1, 2, 3])),
    Accepted(#"{"$binary":{"subType":"0","base64":""}}"#, .bytes([])),
    Accepted(
      #"{"$binary":{"base64":"+B1PrH3sEdCnZQCgyR5r9g==","subType":"04"}}"#,
      .uuid(UUIDValue(high: 0xf81d_4fac_7dec_11d0, low: 0xa765_00a0_c91e_6bf6))),
    Accepted(#"{"$uuid":"\#(sample)"}"#, .uuid(uuid)),
    Accepted(#"{"$numberLong":"-5"}"#, .int(-5)), Accepted(#"{"$numberInt":"2147483647"}"#, .int(2_147_483_647)),
    Accepted(#"{"$numberDouble":"-0.0"}"#, .double(-0.0)), Accepted(#"{"$numberDouble":"12"}"#, .double(12)),
    Accepted(
      #"{"$blob":{"hash":"\#(String(repeating: "00", count: 32))","size":3,"type":"image/jpeg"}}"#,
      .blob(of: 3, type: "image/jpeg")),
    Accepted(
      #"{"$blob":{"list":"\#(String(repeating: "11", count: 32))","hash":"\#(String(repeating: "00", count: 32))","size":262145,"type":""}}"#,
      .blob(of: 262_145, type: "", listHash: Digest([UInt8](repeating: 0x11, count: 32)))),
    Accepted(#"{"mpa":{"$ref":"MPA","name":"x"}}"#, map(["mpa": map(["$ref": .string("MPA"), "name": .string("x")])])),
    Accepted(#"{"a":{"$set":{"$x":1}}}"#, map(["a": map(["$set": map(["$x": .int(1)])])])),
    Accepted(
      #"{"$literal":{"$oid":"x","$set":{"$date":{"$numberLong":"1"}}}}"#,
      map(["$oid": .string("x"), "$set": .date(1)])),
    Accepted(#"{"a":{"$literal":{"$literal":1}}}"#, map(["a": map(["$literal": .int(1)])])),
  ]

  @Test(
    "the keys of an object, or of one in it, come in the order of the text beside the value",
    arguments: [
      (#"{"z":1,"a":2}"#, nil, ["z", "a"]), (#" { "b" : {"x":1,"a":[1,{"c":2}]} , "a" : "}\"," } "#, nil, ["b", "a"]),
      (#"{"é\u0301":1,"":2,"\"q\\":3}"#, nil, ["é\u{301}", "", "\"q\\"]), ("{}", nil, []), ("[{\"a\":1}]", nil, []),
      (#"{"b":{"q":1,"p":2},"s":{"y":{"w":1,"v":2},"x":1},"a":{"n":1,"m":2}}"#, "s", ["y", "x"]),
      (#"{"s":{"$literal":{"y":1,"x":2}}}"#, "s", ["y", "x"]), (#"{"s":[{"y":1,"x":2}]}"#, "s", []),
      (#"{"a":{"s":{"b":1}}}"#, "s", []),
    ] as [(String, Text?, [Text])])
  func keyOrder(text: String, member: Text?, expected: [Text]) throws {
    let bytes = Array(text.utf8)
    let (value, keys) = try ExtendedJSON.parse(bytes[...], keysOf: member, operators: .allowed)
    #expect(keys == expected)
    #expect(try value == ExtendedJSON.parse(bytes, operators: .allowed))
  }

  @Test("accepted text gives its value", arguments: accepted)
  func acceptedText(_ sample: Accepted) throws {
    #expect(try ExtendedJSON.parse(Array(sample.text.utf8)) == sample.value)
  }

  static let refused: [Refused] = [
    Refused("", .unexpectedEnd(expected: "a value"), at: 0),
    Refused("  ", .unexpectedEnd(expected: "a value"), at: 2),
    Refused("nul", .unexpectedEnd(expected: "null"), at: 3),
    Refused("nulL", .unexpectedByte(0x6e, expected: "a value"), at: 0),
    Refused("1 2", .trailingContent, at: 2), Refused("{}}", .trailingContent, at: 2),
    Refused("01", .invalidNumber, at: 0), Refused("-", .invalidNumber, at: 0), Refused("1.", .invalidNumber, at: 0),
    Refused("[-01]", .invalidNumber, at: 1, "[0]"), Refused("1e", .invalidNumber, at: 0),
    Refused("1e+", .invalidNumber, at: 0), Refused("+1", .unexpectedByte(0x2b, expected: "a value"), at: 0),
    Refused(".5", .unexpectedByte(0x2e, expected: "a value"), at: 0), Refused("0x10", .trailingContent, at: 1),
    Refused("NaN", .notFinite, at: 0), Refused("[1,Infinity]", .notFinite, at: 3, "[1]"),
    Refused("-Infinity", .notFinite, at: 0), Refused("1e400", .doubleOutOfRange, at: 0),
    Refused("-1.5e309", .doubleOutOfRange, at: 0),
    Refused("9223372036854775808", .integerOutOfRange, at: 0),
    Refused(#"{"a":[-9223372036854775809]}"#, .integerOutOfRange, at: 6, "a[0]"),
    Refused("[1,]", .unexpectedByte(0x5d, expected: "a value"), at: 3, "[1]"),
    Refused("[1", .unexpectedEnd(expected: "',' or ']'"), at: 2),
    Refused("[1 2]", .unexpectedByte(0x32, expected: "',' or ']'"), at: 3),
    Refused("{a:1}", .unexpectedByte(0x61, expected: "a key in quotation marks"), at: 1),
    Refused(#"{"a":1,}"#, .unexpectedByte(0x7d, expected: "a key in quotation marks"), at: 7),
    Refused(#"{"a" 1}"#, .unexpectedByte(0x31, expected: "':'"), at: 5),
    Refused(#"{"a":}"#, .unexpectedByte(0x7d, expected: "a value"), at: 5, "a"),
    Refused(#"{"a":1"#, .unexpectedEnd(expected: "',' or '}'"), at: 6),
    Refused(#"{"crew":[{},{},{"name":'x'}]}"#, .unexpectedByte(0x27, expected: "a value"), at: 23, "crew[2].name"),
    Refused(#"{"a.b":{"":[nope]}}"#, .unexpectedByte(0x6e, expected: "a value"), at: 12, #"["a.b"][""][0]"#),
    Refused("\"a", .unexpectedEnd(expected: "the closing '\"'"), at: 2),
    Refused("\"a\nb\"", .controlCharacter(0x0a), at: 2), Refused("\"\\n\u{1f}\"", .controlCharacter(0x1f), at: 3),
    Refused(#""\x""#, .invalidEscape, at: 1), Refused(#""\u12g4""#, .invalidEscape, at: 5),
    Refused(#""\ud83d""#, .loneSurrogate, at: 1), Refused(#""a\udc1f""#, .loneSurrogate, at: 2),
    Refused(#""\ud83d\u0041""#, .loneSurrogate, at: 1), Refused(#""\ud83dxx""#, .loneSurrogate, at: 1),
    Refused(#"{"a":1,"b":2,"a":3}"#, .duplicateKey("a"), at: 13),
    Refused(#"{"a":1,"\u0061":2}"#, .duplicateKey("a"), at: 7),
    Refused(#"{"x":{"longer than 8":1,"longer than 8":2}}"#, .duplicateKey("longer than 8"), at: 24, "x"),
    Refused(#"{"b":1,"a":1,"a":2,"b":1}"#, .duplicateKey("a"), at: 13),
    Refused(#"{"a\u0000":1}"#, .nulInKey, at: 1),
    Refused("{\"\(String(repeating: "k", count: 1025))\":1}", .keyTooLong(byteCount: 1025, limit: 1024), at: 1),
    Refused(#"{"a":{"$numberDecimal":"1"}}"#, .unsupportedType("$numberDecimal"), at: 6, "a"),
    Refused(#"[{"$timestamp":{"t":1,"i":1}}]"#, .unsupportedType("$timestamp"), at: 2, "[0]"),
    Refused(#"{"$regularExpression":{"pattern":"","options":""}}"#, .unsupportedType("$regularExpression"), at: 1),
    Refused(#"{"$minKey":1}"#, .unsupportedType("$minKey"), at: 1),
    Refused(#"{"$maxKey":1}"#, .unsupportedType("$maxKey"), at: 1),
    Refused(#"{"$code":""}"#, .unsupportedType("$code"), at: 1),
    Refused(#"{"x":1,"$scope":{}}"#, .unsupportedType("$scope"), at: 7),
    Refused(#"{"$symbol":""}"#, .unsupportedType("$symbol"), at: 1),
    Refused(#"{"$dbPointer":{}}"#, .unsupportedType("$dbPointer"), at: 1),
    Refused(#"{"$undefined":true}"#, .unsupportedType("$undefined"), at: 1),
    Refused(#"{"a":1,"$oid":"5ed554a47527930d67194feb"}"#, .misplacedWrapper("$oid"), at: 7),
    Refused(#"{"$oid":"5ed554a47527930d67194feb","a":1}"#, .misplacedWrapper("$oid"), at: 34),
    Refused(#"{"$set":{"a":1}}"#, .operatorKey("$set"), at: 1),
    Refused(#"{"$oid":"5ed554a47527930d67194feb""#, .unexpectedEnd(expected: "'}'"), at: 34),
  ]

  @Test("refused text is refused with its reason and place", arguments: refused)
  func refusedText(_ sample: Refused) {
    do {
      let value = try ExtendedJSON.parse(Array(sample.text.utf8))
      Issue.record("accepted as \(value)")
    } catch {
      #expect(error.kind == sample.kind)
      #expect(error.offset == sample.offset)
      #expect(error.path == sample.path)
    }
  }

  @Test(
    "a wrapper with the wrong content is refused at the content",
    arguments: [
      (#"{"$oid":"5ed554a47527930d67194fe"}"#, "$oid"), (#"{"$oid":"5ed554a47527930d67194feb00"}"#, "$oid"),
      (#"{"$oid":5}"#, "$oid"), (#"{"$oid":"5ed554a47527930d67194fxx"}"#, "$oid"),
      (#"{"$date":5}"#, "$date"), (#"{"$date":"2020-06-01"}"#, "$date"), (#"{"$date":"2020-06-01T19:19:00"}"#, "$date"),
      (#"{"$date":"2020-13-01T00:00:00Z"}"#, "$date"), (#"{"$date":"2019-02-29T00:00:00Z"}"#, "$date"),
      (#"{"$date":"1900-02-29T00:00:00Z"}"#, "$date"), (#"{"$date":"2020-06-01T24:00:00Z"}"#, "$date"),
      (#"{"$date":"2020-06-01T19:19:60Z"}"#, "$date"), (#"{"$date":"2020-06-01T19:19:00.0001Z"}"#, "$date"),
      (#"{"$date":"2020-06-01T19:19:00.Z"}"#, "$date"), (#"{"$date":"2020-06-01T19:19:00Zx"}"#, "$date"),
      (#"{"$date":{"$oid":"5ed554a47527930d67194feb"}}"#, "$date"), (#"{"$date":{}}"#, "$date"),
      (#"{"$binary":{"base64":"AQID","subType":"03"}}"#, "$binary"), (#"{"$binary":"AQID"}"#, "$binary"),
      (#"{"$binary":{"base64":"AQI","subType":"00"}}"#, "$binary"), (#"{"$binary":{"base64":"AQID"}}"#, "$binary"),
      (#"{"$binary":{"base64":"AQJ=","subType":"00"}}"#, "$binary"),
      (#"{"$binary":{"base64":"AQ==AQ==","subType":"00"}}"#, "$binary"),
      (#"{"$binary":{"base64":"AQ=","subType":"00"}}"#, "$binary"),
      (#"{"$binary":{"base64":"A-ID","subType":"00"}}"#, "$binary"),
      (#"{"$binary":{"base64":"AQID","subType":"04"}}"#, "$binary"),
      (#"{"$uuid":"f81d4fae7dec11d0a76500a0c91e6bf6"}"#, "$uuid"),
      (#"{"$uuid":"f81d4fae-7dec-11d0-a765-00a0c91e6bfg"}"#, "$uuid"),
      (#"{"$numberInt":"2147483648"}"#, "$numberInt"), (#"{"$numberInt":5}"#, "$numberInt"),
      (#"{"$numberLong":"9223372036854775808"}"#, "$numberLong"), (#"{"$numberLong":"1.0"}"#, "$numberLong"),
      (#"{"$numberLong":""}"#, "$numberLong"), (#"{"$numberLong":" 1"}"#, "$numberLong"),
      (#"{"$numberDouble":"NaN"}"#, "$numberDouble"), (#"{"$numberDouble":"-Infinity"}"#, "$numberDouble"),
      (#"{"$numberDouble":"1e400"}"#, "$numberDouble"), (#"{"$numberDouble":"0x1p3"}"#, "$numberDouble"),
      (#"{"$blob":{"hash":"00","size":1,"type":""}}"#, "$blob"), (blobText("-1"), "$blob"),
      (blobText("262145"), "$blob"), (blobText("17179869185", list: "00"), "$blob"),
      (blobText("5", list: "00"), "$blob"), (blobText("262145", list: ""), "$blob"), (#"{"$literal":[]}"#, "$literal"),
    ])
  func wrongContent(_ text: String, _ name: String) {
    let error = #expect(throws: JSONError.self) { try ExtendedJSON.parse(Array(text.utf8)) }
    guard case .invalidContent(let wrapper, _) = error?.kind else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(wrapper == Text(name))
    #expect(
      error?.offset
        == text.utf8.firstIndex(of: UInt8(ascii: ":")).map { text.utf8.distance(from: text.startIndex, to: $0) + 1 })
  }

  @Test("operators are plain keys where they are allowed, and wrappers still work")
  func operators() throws {
    let text = #"{"$set":{"d":{"$date":{"$numberLong":"7"}}},"$or":[{"a":{"$gt":1}}]}"#
    let expected = map([
      "$set": map(["d": .date(7)]), "$or": .array([map(["a": map(["$gt": .int(1)])])]),
    ])
    #expect(try ExtendedJSON.parse(Array(text.utf8), operators: .allowed) == expected)
  }

  @Test("two spellings of é are two keys")
  func spellings() throws {
    let text = "{\"caf\u{e9}\":1,\"cafe\u{301}\":2}"
    let map = try ExtendedJSON.parseMap(Array(text.utf8))
    #expect(map.count == 2)
    #expect(map[Text("caf\u{e9}")] == .int(1))
    #expect(map[Text("cafe\u{301}")] == .int(2))
    #expect(throws: JSONError.self) { try ExtendedJSON.parse(Array("{\"\u{e9}\":1,\"\\u00e9\":2}".utf8)) }
  }

  @Test(
    "invalid UTF-8 is refused at its first wrong sequence",
    arguments: [
      ([0x61, 0xff], 2), ([0xc3], 1), ([0xc0, 0x80], 1), ([0xed, 0xa0, 0x80], 1), ([0xf4, 0x90, 0x80, 0x80], 1),
      ([0xc3, 0xa9, 0xe2, 0x82], 3), ([0xf0, 0x80, 0x80, 0x80], 1), ([0x61, 0x80], 2), ([0xe1, 0x80, 0x41], 1),
    ] as [([UInt8], Int)])
  func invalidUTF8(_ content: [UInt8], _ offset: Int) {
    for text in [[0x22] + content + [0x22], [0x22] + content + Array(#"\n""#.utf8)] {
      let error = #expect(throws: JSONError.self) { try ExtendedJSON.parse(text) }
      #expect(error?.kind == .invalidUTF8)
      #expect(error?.offset == offset)
    }
  }

  @Test("64 levels are accepted, 65 are not, and wrappers are no levels")
  func depth() throws {
    func nested(_ levels: Int, _ inner: String) -> [UInt8] {
      Array(
        (String(repeating: #"{"a":["#, count: levels / 2) + inner + String(repeating: "]}", count: levels / 2)).utf8)
    }
    for inner in ["1", #"{"$date":{"$numberLong":"1"}}"#, #"{"$binary":{"base64":"AQID","subType":"00"}}"#] {
      #expect(throws: Never.self) { try ExtendedJSON.parse(nested(64, inner)) }
    }
    for inner in ["[]", "{}", #"{"a":1}"#, #"{"$literal":{}}"#] {
      let error = #expect(throws: JSONError.self) { try ExtendedJSON.parse(nested(64, inner)) }
      #expect(error?.kind == .tooDeep(limit: 64))
    }
    let deep = [UInt8](repeating: UInt8(ascii: "["), count: 1 << 20)
    #expect(throws: JSONError.self) { try ExtendedJSON.parse(deep) }
    let wrappers = Array(String(repeating: #"{"$date":"#, count: 100_000).utf8)
    #expect(throws: JSONError.self) { try ExtendedJSON.parse(wrappers) }
  }

  @Test("the byte limit is inclusive")
  func byteLimit() throws {
    let text = Array(("\"" + String(repeating: "x", count: 98) + "\"").utf8)
    #expect(throws: Never.self) { try ExtendedJSON.parse(text, limits: .init(byteCount: 100)) }
    let error = #expect(throws: JSONError.self) { try ExtendedJSON.parse(text, limits: .init(byteCount: 99)) }
    #expect(error?.kind == .tooLarge(byteCount: 100, limit: 99))
  }

  @Test("an error names line, column and path in one sentence")
  func message() {
    let text = "{\n  \"crew\": [\n    {\"näme\": \"x\", \"age\": 01}\n  ]\n}"
    let error = #expect(throws: JSONError.self) { try ExtendedJSON.parse(Array(text.utf8)) }
    #expect(error?.message == "Line 3, column 26 (crew[0].age): this is not a JSON number.")
    #expect(error?.moved(toLine: 10, column: 5, offset: 100).line == 12)
    #expect(error?.moved(toLine: 10, column: 5, offset: 100).column == 26)
    #expect(error?.moved(toLine: 10, column: 5, offset: 100).offset == 100 + (error?.offset ?? 0))
  }

  @Test("a slice is read by itself")
  func slice() throws {
    let text = Array(#"xx{"a":1}yy"#.utf8)
    #expect(try ExtendedJSON.parse(text[2..<9]) == map(["a": .int(1)]))
  }
}

/// A blob reference with a list hash of 32 times these bytes, or none.
private func blobText(_ size: String, list: String? = nil) -> String {
  let list = list.map { #","list":"\#(String(repeating: $0, count: 32))""# } ?? ""
  return #"{"$blob":{"hash":"\#(String(repeating: "00", count: 32))","size":\#(size),"type":""\#(list)}}"#
}
