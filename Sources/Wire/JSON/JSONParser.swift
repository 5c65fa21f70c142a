import Replication

/// A recursive descent over bytes. Recursion is bounded by ``ExtendedJSON/Limits/depth``.
///
/// The input is handed from method to method: a span cannot be stored in a struct without experimental features.
struct JSONParser {
  let limits: ExtendedJSON.Limits
  let operators: ExtendedJSON.OperatorKeys
  var position = 0
  /// Values begun, less those that went into the one value of a wrapper.
  var valueCount = 0
  /// How many wrappers are open.
  var wrapperNesting = 0
  /// Entries of all maps that are being read, the innermost last: one growing array instead of one for each map.
  private var pending: [PendingEntry] = []
  /// The keys of one object as its text has them, where somebody asked for them.
  var order: KeyOrder?
  /// Of the outermost object, whose value is being read.
  private var member: Text?

  init(limits: ExtendedJSON.Limits, operators: ExtendedJSON.OperatorKeys) {
    (self.limits, self.operators) = (limits, operators)
  }

  mutating func parseWhole(_ input: Span<UInt8>) throws(JSONError) -> Value {
    guard input.count <= limits.byteCount else {
      throw JSONError(.tooLarge(byteCount: input.count, limit: limits.byteCount), offset: 0, line: 1, column: 1)
    }
    skipByteOrderMark(input)
    skipWhitespace(input)
    let value = try parseValue(input, depth: 0)
    skipWhitespace(input)
    guard position == input.count else { throw fail(.trailingContent, input) }
    return value
  }

  /// Editors of Windows put one before the text; RFC 8259 §8.1 lets readers pass over it.
  private mutating func skipByteOrderMark(_ input: Span<UInt8>) {
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    guard input.count >= mark.count, mark.indices.allSatisfy({ input[$0] == mark[$0] }) else { return }
    position = mark.count
  }

  /// `depth` is the number of maps and arrays around the value.
  mutating func parseValue(_ input: Span<UInt8>, depth: Int) throws(JSONError) -> Value {
    guard position < input.count else { throw fail(.unexpectedEnd(expected: "a value"), input) }
    guard valueCount < limits.valueCount else { throw fail(.tooManyValues(limit: limits.valueCount), input) }
    valueCount += 1
    switch input[position] {
    case UInt8(ascii: "\""): return .string(try parseString(input))
    case UInt8(ascii: "{"): return try parseObject(input, depth: depth)
    case UInt8(ascii: "["): return .array(try parseArray(input, depth: depth))
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try parseNumber(input)
    case UInt8(ascii: "t"): return try parseWord("true", .bool(true), input)
    case UInt8(ascii: "f"): return try parseWord("false", .bool(false), input)
    case UInt8(ascii: "n"): return try parseWord("null", .null, input)
    case UInt8(ascii: "N"), UInt8(ascii: "I"): throw fail(.notFinite, input)
    case let byte: throw fail(.unexpectedByte(byte, expected: "a value"), input)
    }
  }

  private mutating func parseWord(_ word: StaticString, _ value: Value, _ input: Span<UInt8>) throws(JSONError) -> Value
  {
    let start = position
    for index in 0..<word.utf8CodeUnitCount {
      guard position < input.count else { throw fail(.unexpectedEnd(expected: "\(word)"), input) }
      guard input[position] == word.utf8Start[index] else {
        throw fail(.unexpectedByte(input[start], expected: "a value"), at: start, input)
      }
      position += 1
    }
    return value
  }

  private mutating func parseArray(_ input: Span<UInt8>, depth: Int) throws(JSONError) -> [Value] {
    guard depth < limits.depth else { throw fail(.tooDeep(limit: limits.depth), input) }
    position += 1
    skipWhitespace(input)
    var items: [Value] = []
    if consume(UInt8(ascii: "]"), input) { return items }
    while true {
      do throws(JSONError) {
        items.append(try parseValue(input, depth: depth + 1))
      } catch {
        throw error.inside(index: items.count)
      }
      skipWhitespace(input)
      if consume(UInt8(ascii: "]"), input) { return items }
      try expect(UInt8(ascii: ","), "',' or ']'", input)
      skipWhitespace(input)
    }
  }

  private mutating func parseObject(_ input: Span<UInt8>, depth: Int) throws(JSONError) -> Value {
    let start = position
    position += 1
    skipWhitespace(input)
    if position < input.count, input[position] == UInt8(ascii: "\""), mayStartWithDollar(position, input) {
      let key = try parseKey(input)
      if JSONWrapper.isReserved(key) { return try parseWrapper(key, input, depth: depth) }
    }
    position = start
    return .map(try parseMap(input, depth: depth, literal: false))
  }

  /// Whether the key whose quotation mark stands at `offset` begins with `$`, be it behind an escape.
  private func mayStartWithDollar(_ offset: Int, _ input: Span<UInt8>) -> Bool {
    guard offset + 1 < input.count else { return false }
    return input[offset + 1] == UInt8(ascii: "$") || input[offset + 1] == UInt8(ascii: "\\")
  }

  /// `literal`: no key has a meaning of its own.
  mutating func parseMap(_ input: Span<UInt8>, depth: Int, literal: Bool) throws(JSONError) -> ValueMap {
    guard depth < limits.depth else { throw fail(.tooDeep(limit: limits.depth), input) }
    position += 1
    skipWhitespace(input)
    if consume(UInt8(ascii: "}"), input) { return ValueMap() }
    let base = pending.count
    while true {
      let offset = position
      let key = try parseKey(input)
      if depth == 0 { member = key }
      if !literal, mayStartWithDollar(offset, input) { try checkOperator(key, at: offset, input, depth: depth) }
      try skipColon(input)
      do throws(JSONError) {
        let value = try parseValue(input, depth: depth + 1)
        pending.append(PendingEntry(key: key, value: value, offset: offset, input))
      } catch {
        throw error.inside(key: key)
      }
      skipWhitespace(input)
      if consume(UInt8(ascii: "}"), input) { return try finishMap(from: base, depth: depth, input) }
      try expect(UInt8(ascii: ","), "',' or '}'", input)
      skipWhitespace(input)
    }
  }

  private func checkOperator(_ key: Text, at offset: Int, _ input: Span<UInt8>, depth: Int) throws(JSONError) {
    guard key.startsWithDollar else { return }
    if JSONWrapper.unsupported.contains(key.string) { throw fail(.unsupportedType(key), at: offset, input) }
    if JSONWrapper.isReserved(key) { throw fail(.misplacedWrapper(key), at: offset, input) }
    if depth == 0, operators == .refused { throw fail(.operatorKey(key), at: offset, input) }
  }

  private mutating func finishMap(from base: Int, depth: Int, _ input: Span<UInt8>) throws(JSONError) -> ValueMap {
    if let order, order.isAbout(member, depth: depth) { self.order?.keys = pending[base...].map(\.key) }
    if !pending[base...].isAscending { pending[base...].sort { $0 < $1 } }
    var entries: [ValueMap.Entry] = []
    entries.reserveCapacity(pending.count - base)
    var second: PendingEntry?
    for index in base..<pending.count {
      let entry = pending[index]
      if index > base, pending[index - 1].hasKey(of: entry), entry.offset < second?.offset ?? .max { second = entry }
      entries.append(ValueMap.Entry(key: entry.key, value: entry.value))
    }
    if let second { throw fail(.duplicateKey(second.key), at: second.offset, input) }
    pending.removeSubrange(base...)
    return ValueMap(ascending: entries)
  }

  func fail(_ kind: JSONError.Kind, _ input: Span<UInt8>) -> JSONError { fail(kind, at: position, input) }

  func fail(_ kind: JSONError.Kind, at offset: Int, _ input: Span<UInt8>) -> JSONError {
    JSONError(kind, at: offset, in: input)
  }
}

/// The keys of the outermost object in the order of their text, or of the one that is its member under a name.
struct KeyOrder {
  let member: Text?
  var keys: [Text] = []

  func isAbout(_ member: Text?, depth: Int) -> Bool {
    self.member == nil ? depth == 0 : depth == 1 && member == self.member
  }
}

/// An entry that has not found its place in the order of keys yet.
private struct PendingEntry {
  /// The first eight bytes of the key, filled up with zeros, which no key contains: most comparisons end here.
  let prefix: UInt64
  let key: Text
  let value: Value
  let offset: Int

  /// `offset` is that of the key's opening quotation mark.
  init(key: Text, value: Value, offset: Int, _ input: Span<UInt8>) {
    var (prefix, shift) = (UInt64(0), 56 as UInt64)
    for index in offset + 1..<min(offset + 9, input.count) {
      let byte = input[index]
      if byte == UInt8(ascii: "\"") { break }
      if byte == UInt8(ascii: "\\") {
        prefix = PendingEntry.prefix(of: key)
        break
      }
      prefix |= UInt64(byte) << shift
      shift &-= 8
    }
    (self.prefix, self.key, self.value, self.offset) = (prefix, key, value, offset)
  }

  private static func prefix(of key: Text) -> UInt64 {
    key.utf8.prefix(8).enumerated().reduce(0) { $0 | UInt64($1.element) << (56 - 8 * UInt64($1.offset)) }
  }

  /// Equal keys in the order in which they were read.
  static func < (a: PendingEntry, b: PendingEntry) -> Bool {
    if a.prefix != b.prefix { return a.prefix < b.prefix }
    return a.key == b.key ? a.offset < b.offset : a.key < b.key
  }

  func hasKey(of other: PendingEntry) -> Bool { prefix == other.prefix && key == other.key }
}

extension ArraySlice<PendingEntry> {
  fileprivate var isAscending: Bool {
    for index in indices.dropFirst() where !(self[index - 1] < self[index]) { return false }
    return true
  }
}
