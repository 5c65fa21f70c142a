import Replication

/// MongoDB Extended JSON v2 in its relaxed form, read strictly: RFC 8259 and nothing beyond it. A byte
/// order mark before it is passed over.
///
/// Numbers without `.` and exponent are int64, the others double. Types that JSON lacks stand in wrappers, objects with
/// one key: `$oid`, `$date` (ISO 8601 with offset, or `$numberLong`), `$binary` (subtype 00 bytes, 04 UUID), `$uuid`,
/// `$numberInt`, `$numberLong`, `$numberDouble`. BSON types that Seamesh has no value for are refused by name. Two
/// wrappers are our own: `$blob` for a blob reference (`hash`, `size`, `type`, and `list` where it has several pieces), and
/// `$literal` around a map with keys that would otherwise be taken for a wrapper or an operator, so that every ``Value``
/// can be written and read back.
///
/// Any other key with `$` is an ordinary one, as the specification of Extended JSON asks (old data holds DBRefs with
/// fields of their own), except at the top of a document: there it is an update operator in the wrong place, which
/// storing as data would hide. ``OperatorKeys/allowed`` lifts this for filters and updates.
package enum ExtendedJSON {
  package struct Limits: Sendable, Equatable {
    /// Bytes of JSON text.
    package var byteCount: Int
    /// Maps and arrays inside one another, the outermost being level 1.
    package var depth: Int
    package var keyByteCount: Int
    /// Values of any kind in one text, objects and arrays with what is in them: a number of two bytes takes some thirty times as
    /// many once it is read. What a wrapper holds goes into its one value.
    package var valueCount: Int
    /// A whole number beyond int64 is a double where it is written as databases write one, with zeros behind its shortest digits,
    /// and not refused.
    package var takesLargeDoubles = false

    /// The limits of one document written on this node.
    package static let document = Limits(byteCount: 1 << 20)
    /// No document that keeps its limit has more, for each value takes a byte of its 1 MiB at least; ``besideDocuments`` with it.
    package static let documentValueCount = (1 << 20) + besideDocuments
    /// For what stands around documents: ids, update operators, operations of a transaction.
    package static let besideDocuments = 1 << 16
    /// What a database has made of a document: a body of the largest one with spaces and escapes, and doubles without an exponent.
    package static let ofDatabase = Limits(byteCount: 64 << 20, takesLargeDoubles: true)

    package init(
      byteCount: Int, depth: Int = Value.depthLimit, keyByteCount: Int = Value.keyByteLimit, valueCount: Int = .max,
      takesLargeDoubles: Bool = false
    ) {
      (self.byteCount, self.depth, self.keyByteCount) = (byteCount, depth, keyByteCount)
      (self.valueCount, self.takesLargeDoubles) = (valueCount, takesLargeDoubles)
    }
  }

  /// What keys with `$` mean at the top level when no wrapper has that name.
  package enum OperatorKeys: Sendable {
    case refused
    /// For filters, sort orders, projections and updates.
    case allowed
  }

  /// The one value that `bytes` hold, white space around it aside.
  package static func parse(
    _ bytes: [UInt8], limits: Limits = .document, operators: OperatorKeys = .refused
  ) throws(JSONError) -> Value {
    try parse(bytes.span, limits: limits, operators: operators)
  }

  package static func parse(
    _ bytes: ArraySlice<UInt8>, limits: Limits = .document, operators: OperatorKeys = .refused
  ) throws(JSONError) -> Value {
    try parse(bytes.span, limits: limits, operators: operators)
  }

  package static func parse(
    _ input: Span<UInt8>, limits: Limits = .document, operators: OperatorKeys = .refused
  ) throws(JSONError) -> Value {
    var parser = JSONParser(limits: limits, operators: operators)
    return try parser.parseWhole(input)
  }

  /// Besides the value the keys of the outermost object, or of the one that is its member under a name, in the order in which
  /// the text has them: a sort order means something by it, while a ``ValueMap`` keeps its keys in byte order.
  package static func parse(
    _ bytes: ArraySlice<UInt8>, keysOf member: Text?, limits: Limits = .document, operators: OperatorKeys = .refused
  ) throws(JSONError) -> (value: Value, keys: [Text]) {
    var parser = JSONParser(limits: limits, operators: operators)
    parser.order = KeyOrder(member: member)
    let value = try parser.parseWhole(bytes.span)
    return (value, parser.order?.keys ?? [])
  }

  /// As ``parse(_:limits:operators:)-([UInt8],_,_)``, for what must be an object.
  package static func parseMap(
    _ bytes: [UInt8], limits: Limits = .document, operators: OperatorKeys = .refused
  ) throws(JSONError) -> ValueMap {
    guard case .map(let map) = try parse(bytes, limits: limits, operators: operators) else {
      throw JSONError(.notAnObject, offset: 0, line: 1, column: 1)
    }
    return map
  }
}

extension ExtendedJSON {
  /// Keys that a map of a document has only within `$literal`.
  package static let reservedKeys = JSONWrapper.allCases.map(\.rawValue) + JSONWrapper.unsupported.sorted()
}

/// Names of keys that give an object a meaning of its own.
enum JSONWrapper: String, CaseIterable {
  case oid = "$oid"
  case date = "$date"
  case binary = "$binary"
  case uuid = "$uuid"
  case numberInt = "$numberInt"
  case numberLong = "$numberLong"
  case numberDouble = "$numberDouble"
  case blob = "$blob"
  case literal = "$literal"

  /// BSON types without a counterpart in ``Value``.
  static let unsupported: Set<String> = [
    "$numberDecimal", "$timestamp", "$regularExpression", "$minKey", "$maxKey", "$code", "$scope", "$symbol",
    "$dbPointer", "$undefined",
  ]

  static func isReserved(_ key: Text) -> Bool {
    JSONWrapper(rawValue: key.string) != nil || unsupported.contains(key.string)
  }
}

extension Text {
  var startsWithDollar: Bool { utf8.first == UInt8(ascii: "$") }
}
