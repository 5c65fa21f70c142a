import Replication
import TestSupport
import Testing

@testable import Wire

@Suite("Extended JSON: how many values a text has")
struct ValueCountTests {
  private func refusal(_ text: String, limit: Int) -> JSONError? {
    let bytes = Array(text.utf8)
    do throws(JSONError) {
      _ = try ExtendedJSON.parse(bytes, limits: .init(byteCount: bytes.count, valueCount: limit))
      return nil
    } catch {
      return error
    }
  }

  @Test("the limit is inclusive, and counts objects and arrays with what is in them")
  func limit() {
    let text = #"[1,[true,null],{"a":"x","b":{}}]"#
    #expect(refusal(text, limit: 8) == nil)
    let error = refusal(text, limit: 7)
    #expect(error?.kind == .tooManyValues(limit: 7) && error?.offset == 28)
    #expect(error?.message.hasSuffix("more than 7 values, objects and arrays with what is in them.") == true)
  }

  @Test("a wrapper is one value once it is closed, and while it is open what it holds counts")
  func wrappers() {
    let id = #"{"$oid":"5ed554a47527930d67194feb"}"#
    let ids = "[" + Array(repeating: id, count: 100).joined(separator: ",") + "]"
    #expect(refusal(ids, limit: 102) == nil)
    #expect(refusal(#"{"$literal":{"a":[1,2]}}"#, limit: 3)?.kind == .tooManyValues(limit: 3))
    let stuffed = #"{"$oid":["# + Array(repeating: "1", count: 100).joined(separator: ",") + "]}"
    #expect(
      refusal(stuffed, limit: 102)?.kind == .invalidContent(of: "$oid", expected: "a string of 24 hexadecimal digits"))
    #expect(refusal(stuffed, limit: 50)?.kind == .tooManyValues(limit: 50))
  }

  @Test("a document of 1 MiB has no more values than one may have, whatever is in it")
  func largestDocument() throws {
    let text = Array((#"{"":["# + String(repeating: "1,", count: (1 << 20) - 8) + "1]}").utf8)
    let limits = ExtendedJSON.Limits(byteCount: text.count, valueCount: ExtendedJSON.Limits.documentValueCount)
    var writer = CBORWriter()
    writer.value(try ExtendedJSON.parse(text, limits: limits))
    #expect(writer.bytes.count == 1 << 20)
  }

  @Test("there are never more values than are counted beforehand, and in plain text not one more")
  func atMost() throws {
    for sample in JSONParseTests.accepted {
      let text = Array(sample.text.utf8)
      let most = ExtendedJSON.valueCountAtMost(in: text[...])
      #expect(refusal(sample.text, limit: most) == nil, "\(sample.text)")
    }
    for (text, count) in [
      ("1", 1), ("[1,2]", 3), (#"["a,b[{","\"","\\",{"k,":1}]"#, 6), ("[\"\n[1,1]", 4), (#"["\"#, 2), ("", 1),
    ] { #expect(ExtendedJSON.valueCountAtMost(in: Array(text.utf8)[...]) == count, "\(text)") }
  }
}
