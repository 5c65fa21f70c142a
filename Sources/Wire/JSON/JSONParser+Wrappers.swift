import Replication

extension JSONParser {
  /// From behind the key to behind the closing brace.
  mutating func parseWrapper(_ key: Text, _ input: Span<UInt8>, depth: Int) throws(JSONError) -> Value {
    guard let wrapper = JSONWrapper(rawValue: key.string) else {
      throw fail(.unsupportedType(key), at: position - key.utf8.count - 2, input)
    }
    try skipColon(input)
    let start = position
    let value = try parseContent(of: wrapper, input, depth: depth)
    guard let value else {
      throw fail(.invalidContent(of: key, expected: wrapper.expectedContent), at: start, input)
    }
    skipWhitespace(input)
    if position < input.count, input[position] == UInt8(ascii: ",") { throw fail(.misplacedWrapper(key), input) }
    try expect(UInt8(ascii: "}"), "'}'", input)
    return value
  }

  /// Nil where the content is JSON, but not of the wrapper's form.
  private mutating func parseContent(
    of wrapper: JSONWrapper, _ input: Span<UInt8>, depth: Int
  ) throws(JSONError) -> Value? {
    let isObject = position < input.count && input[position] == UInt8(ascii: "{")
    if wrapper == .literal { return isObject ? .map(try parseMap(input, depth: depth, literal: true)) : nil }
    // A wrapper is one value, its inner objects are no levels of the document. Only `$date` has a wrapper inside; the
    // count keeps wrappers in wrappers from recursing without end.
    guard wrapperNesting < 2 else { return nil }
    wrapperNesting += 1
    let count = valueCount
    defer { (wrapperNesting, valueCount) = (wrapperNesting - 1, count) }
    let content = try parseValue(input, depth: max(1, limits.depth - 1))
    return wrapper.value(content, isObject: isObject)
  }
}

extension JSONWrapper {
  fileprivate var expectedContent: String {
    switch self {
    case .oid: "a string of 24 hexadecimal digits"
    case .date: "a date such as \"2020-06-01T19:19:00.913Z\", not finer than milliseconds, or {\"$numberLong\": …}"
    case .binary: "base64 and subType, the latter \"00\" for bytes or \"04\" for the 16 bytes of a UUID"
    case .uuid: "a UUID such as \"f81d4fae-7dec-11d0-a765-00a0c91e6bf6\""
    case .numberInt: "a string with a 32-bit integer"
    case .numberLong: "a string with a 64-bit integer"
    case .numberDouble: "a string with a finite number"
    case .blob:
      "hash (64 hexadecimal digits), size and type, and above 262,144 bytes list, the hash over its pieces' hashes"
    case .literal: "an object"
    }
  }

  /// `isObject`: whether the content stood in braces, which its value does not always tell.
  fileprivate func value(_ content: Value, isObject: Bool) -> Value? {
    switch (self, content) {
    case (.oid, .string(let text)): decodeHexadecimal(text.utf8).flatMap { ObjectID($0) }.map(Value.objectID)
    case (.uuid, .string(let text)): parseUUID(text).map(Value.uuid)
    case (.numberInt, .string(let text)): parseInteger(text).flatMap(Int32.init(exactly:)).map { .int(Int64($0)) }
    case (.numberLong, .string(let text)): parseInteger(text).map(Value.int)
    case (.numberDouble, .string(let text)): parseDouble(text).map(Value.double)
    case (.date, .string(let text)): CalendarTime.milliseconds(text.bytes).map(Value.date)
    case (.date, .int(let milliseconds)): isObject ? .date(milliseconds) : nil
    case (.binary, .map(let map)): parseBinary(map)
    case (.blob, .map(let map)): parseBlob(map).map(Value.blob)
    default: nil
    }
  }
}

private func parseInteger(_ text: Text) -> Int64? {
  let bytes = text.bytes
  guard let number = scanNumber(bytes.span, from: 0), number.end == bytes.count, !number.isDouble else { return nil }
  return number.integer
}

private func parseDouble(_ text: Text) -> Double? {
  let bytes = text.bytes
  guard let number = scanNumber(bytes.span, from: 0), number.end == bytes.count else { return nil }
  return number.double(bytes.span)
}

/// 8-4-4-4-12 hexadecimal digits (RFC 9562).
private func parseUUID(_ text: Text) -> UUIDValue? {
  let groups = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
  guard groups.map(\.count) == [8, 4, 4, 4, 12] else { return nil }
  return decodeHexadecimal(groups.joined()).flatMap { UUIDValue($0) }
}

private func parseBinary(_ map: ValueMap) -> Value? {
  guard map.count == 2, case .string(let base64) = map["base64"], case .string(let subtype) = map["subType"],
    let bytes = decodeBase64(base64.utf8)
  else { return nil }
  switch subtype.string {
  case "00", "0": return .bytes(bytes)
  case "04", "4": return UUIDValue(bytes).map(Value.uuid)
  default: return nil
  }
}

private func parseBlob(_ map: ValueMap) -> BlobReference? {
  guard case .string(let hash) = map["hash"], case .int(let size) = map["size"], case .string(let type) = map["type"],
    let digest = decodeHexadecimal(hash.utf8).flatMap({ Digest($0) })
  else { return nil }
  guard let list = map["list"] else {
    return map.count == 3 ? BlobReference(hash: digest, size: size, type: type) : nil
  }
  guard map.count == 4, case .string(let text) = list,
    let listHash = decodeHexadecimal(text.utf8).flatMap({ Digest($0) })
  else { return nil }
  return BlobReference(hash: digest, size: size, type: type, listHash: listHash)
}
