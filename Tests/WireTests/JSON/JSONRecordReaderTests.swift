import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Records of JSON arrays and JSON lines")
struct JSONRecordReaderTests {
  /// What the reader made of a stream, in a form that is short to write: `3 {"a":1}` for a record on line 3, `2-4 !` for
  /// a failure that took lines 2 to 4.
  static func read(_ text: [UInt8], chunk: Int, byteLimit: Int = JSONRecordReader.recordByteLimit) -> [String] {
    var reader = JSONRecordReader(recordByteLimit: byteLimit)
    var out: [String] = []
    func drain() {
      while let item = reader.next() {
        switch item {
        case .record(let record): out.append("\(record.line) \(String(decoding: record.bytes, as: UTF8.self))")
        case .failure(let failure): out.append("\(failure.lines.lowerBound)-\(failure.lines.upperBound) !")
        }
      }
    }
    var rest = text[...]
    while !rest.isEmpty {
      reader.append(rest.prefix(chunk))
      rest = rest.dropFirst(chunk)
      drain()
    }
    reader.finish()
    drain()
    return out
  }

  @Test(
    "records come with their lines, broken ones as failures, however the stream is cut",
    arguments: [
      ("", []), (" \n ", []), ("[]", []), ("\n[ ]\n", []),
      ("{\"a\":1}\n{\"b\":2}\n", ["1 {\"a\":1}", "2 {\"b\":2}"]),
      ("{\"a\":1}{\"b\":2} {\"c\":3}", ["1 {\"a\":1}", "1 {\"b\":2}", "1 {\"c\":3}"]),
      ("\n{\n \"a\": {\"b\": [1,\n{}]}\n}\n\n{}", ["2 {\n \"a\": {\"b\": [1,\n{}]}\n}", "7 {}"]),
      ("[{\"a\":1},\n{\"b\":2}\n,{}]\n", ["1 {\"a\":1}", "2 {\"b\":2}", "3 {}"]),
      ("[\n {\"a\":\"]}\\\"\"}\n]", ["2 {\"a\":\"]}\\\"\"}"]),
      ("\u{feff}{\"a\":1}", ["1 {\"a\":1}"]), ("\u{feff}[{}]", ["1 {}"]),
      // Broken lines cost themselves only.
      ("{\"a\":1\n{\"b\":2}\n{\"c\":3}", ["1-1 !", "2 {\"b\":2}", "3 {\"c\":3}"]),
      ("{\"a\":\"x\n{\"b\":2}\n", ["1-1 !", "2 {\"b\":2}"]),
      ("{\"a\":\n{\"b\":2}\n{\"c\":3}\n", ["1-1 !", "2 {\"b\":2}", "3 {\"c\":3}"]),
      ("{\"a\":[1,2}\n{\"b\":2}", ["1-1 !", "2 {\"b\":2}"]),
      ("{\"a\":[1}}\n{\"b\":2}", ["1-1 !", "2 {\"b\":2}"]),
      ("what\n{\"b\":2}", ["1-1 !", "2 {\"b\":2}"]),
      ("{\"a\":1}}\n{\"b\":2}", ["1 {\"a\":1}", "1-1 !", "2 {\"b\":2}"]),
      ("{\"a\":1} x {}\n{}", ["1 {\"a\":1}", "1-1 !", "2 {}"]),
      ("{}\n{\"a\":1", ["1 {}", "2-2 !"]), ("{\"a\":1\n  {\"b\":2}", ["1-2 !"]),
      // In an array too, by brackets or by lines.
      ("[{\"a\":1\n,{\"b\":2}]", ["1-1 !", "2 {\"b\":2}"]),
      ("[\n{\"a\":\"x},\n{\"b\":2},\n{\"c\":3}\n]", ["2-2 !", "3 {\"b\":2}", "4 {\"c\":3}"]),
      (
        "[\n  {\n    \"a\": }\n  },\n  {\n    \"b\": {}\n  }\n]",
        ["2 {\n    \"a\": }", "4-4 !", "5 {\n    \"b\": {}\n  }"]
      ),
      ("[{\"a\":{]},{\"b\":2}]", ["1-1 !", "1 {\"b\":2}"]),
      ("[1, {\"b\":2}, \"x,y\", {}]", ["1-1 !", "1 {\"b\":2}", "1-1 !", "1 {}"]),
      ("[{} {\"b\":2}]", ["1 {}", "1-1 !", "1 {\"b\":2}"]), ("[{},]", ["1 {}", "1-1 !"]),
      ("[,{}]", ["1-1 !", "1 {}"]), ("[{}", ["1 {}", "1-1 !"]), ("[{},\n{\"a\":", ["1 {}", "2-2 !"]),
      ("[{}]\nmore\n{}", ["1 {}", "2-3 !"]), ("[", ["1-1 !"]),
    ] as [(String, [String])])
  func records(_ text: String, _ expected: [String]) {
    for chunk in [1, 2, 3, 7, 1 << 20] {
      #expect(JSONRecordReaderTests.read(Array(text.utf8), chunk: chunk) == expected, "chunks of \(chunk)")
    }
  }

  @Test("a record above the limit is skipped and the next one read, with bounded memory of the first")
  func limit() throws {
    let long = "{\"a\":\"" + String(repeating: "x", count: 200_000) + "\"}"
    let text = Array("{\"z\":1}\n\(long)\n{\"b\":2}".utf8)
    for chunk in [1000, 1 << 20] {
      #expect(
        JSONRecordReaderTests.read(text, chunk: chunk, byteLimit: 1000) == ["1 {\"z\":1}", "2-2 !", "3 {\"b\":2}"])
    }
    var reader = JSONRecordReader(recordByteLimit: 1000)
    reader.append(text)
    reader.finish()
    _ = reader.next()
    guard case .failure(let failure) = reader.next() else {
      Issue.record("no failure")
      return
    }
    #expect(failure.byteCount == long.utf8.count)
    #expect(failure.bytes.count == JSONRecordReader.failureByteLimit)
    #expect(failure.error.kind == .tooLarge(byteCount: 1001, limit: 1000))
  }

  @Test("errors inside a record have their place in the stream")
  func place() throws {
    var reader = JSONRecordReader()
    reader.append(Array("[\n  {\"a\":1}, {\"crew\":[{\"n\":01}],\n\"x\":2}]".utf8))
    reader.finish()
    _ = reader.next()
    guard case .record(let record) = reader.next() else {
      Issue.record("no record")
      return
    }
    let error = #expect(throws: JSONError.self) { try record.value() }
    #expect(error?.message == "Line 2, column 26 (crew[0].n): this is not a JSON number.")
    #expect(error?.offset == 27)
  }

  @Test("damage to some lines leaves the others as they were", arguments: 0..<20 as Range<UInt64>)
  func damage(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for isArray in [false, true] {
      let lines = (0..<50).map { "{\"n\":\($0),\"crew\":[{\"name\":\"x\\\"y\"}],\"at\":[1.5,2.5]}" }
      let broken = Set((0..<8).map { _ in Int.random(in: 0..<50, using: &random) })
      let damaged = lines.indices.map { index in
        guard broken.contains(index) else { return lines[index] }
        return String(lines[index].prefix(Int.random(in: 1..<lines[index].utf8.count, using: &random)))
      }
      let text = isArray ? "[\n" + damaged.joined(separator: ",\n") + "\n]" : damaged.joined(separator: "\n")
      let items = JSONRecordReaderTests.read(Array(text.utf8), chunk: 64)
      let whole = lines.indices.filter { !broken.contains($0) }.map { "\($0 + (isArray ? 2 : 1)) \(lines[$0])" }
      #expect(items.filter { !$0.hasSuffix("!") } == whole, "seed \(seed)")
      #expect(items.count == 50)
    }
  }

  @Test("random bytes neither trap nor hang, and all of them are accounted for", arguments: 0..<10 as Range<UInt64>)
  func noise(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let alphabet = Array("{}[]\",:\\\n a1".utf8)
    for _ in 0..<50 {
      let text = (0..<400).map { _ in alphabet.randomElement(using: &random) ?? 0x20 }
      let whole = JSONRecordReaderTests.read(text, chunk: 1 << 20)
      #expect(JSONRecordReaderTests.read(text, chunk: 5) == whole, "seed \(seed)")
      #expect(whole.count <= text.count)
    }
  }
}
