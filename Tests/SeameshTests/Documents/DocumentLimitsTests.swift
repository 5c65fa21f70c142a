import Engine
import Replication
import Testing
import Wire

@testable import Seamesh

@Suite struct DocumentLimitsTests {
  private static let large: [Value] = [
    .int(.max), .double(0.1), .string(Text(String(repeating: "x", count: 100))),
    .bytes(Array(repeating: 1, count: 100)),
    .date(.min), .objectID(ObjectID(high: .max, low: .max)), .uuid(UUIDValue(high: .max, low: .max)),
    .array([.int(.max), .int(.max)]),
  ]
  private static let blob = BlobReference(hash: .zero, size: 1 << 30, type: "image/jpeg", listHash: .zero)

  private func body(_ value: Value, count: Int) -> ValueMap {
    var body = ValueMap()
    body["a"] = .array(Array(repeating: value, count: count))
    return body
  }

  private func byteCount(_ body: ValueMap) -> Int {
    var writer = CBORWriter()
    writer.value(.map(body))
    return writer.bytes.count
  }

  @Test(
    "a body that is too long by one value is refused, and taken without it, whatever it consists of",
    arguments: large + [blob.map(Value.blob) ?? .null])
  func exact(value: Value) throws {
    let each = byteCount(body(value, count: 101)) - byteCount(body(value, count: 100))
    var count = DocumentLimits.bodyBytes / each
    while byteCount(body(value, count: count)) > DocumentLimits.bodyBytes { count -= 1 }
    #expect(throws: Never.self) { try DocumentLimits.check(body: body(value, count: count)) }
    #expect(throws: NodeError.self) { try DocumentLimits.check(body: body(value, count: count + 1)) }
  }

  @Test("a body nests as deep as the protocol allows, and no deeper")
  func depth() {
    func nested(_ levels: Int) -> ValueMap {
      var body = ValueMap()
      body["a"] = levels > 1 ? .map(nested(levels - 1)) : .null
      return body
    }
    #expect(throws: Never.self) { try DocumentLimits.check(body: nested(Value.depthLimit)) }
    #expect(throws: NodeError.self) { try DocumentLimits.check(body: nested(Value.depthLimit + 1)) }
  }
}
