import Replication
import Wire

/// Extended JSON as the interface speaks it: the parser's errors as problems with their place.
enum JSON {
  /// Levels that a transaction puts around a document (the object, its list, the operation in it): a document in one
  /// may be exactly as deep as one that stands alone.
  private static let envelopeDepth = 3

  static func render(_ value: Value) -> [UInt8] {
    var out: [UInt8] = []
    ExtendedJSON.write(value, into: &out)
    return out
  }

  /// A document that is the whole of `bytes`.
  static func document(_ bytes: ArraySlice<UInt8>) throws(Problem) -> ValueMap {
    try map(bytes, .ofDocumentBody, operators: .refused)
  }

  static func document(_ bytes: [UInt8]) throws(Problem) -> ValueMap { try document(bytes[...]) }

  /// A filter, an update or an envelope around documents: keys with `$` are allowed at its top.
  static func envelope(
    _ bytes: [UInt8], valueLimit: Int = ServerLimit.documentValues
  ) throws(Problem) -> ValueMap {
    try map(bytes[...], envelopeLimits(bytes, valueLimit), operators: .allowed)
  }

  /// With the keys of the object under `member` in the order of the text.
  static func envelope(_ bytes: [UInt8], keysOf member: Text) throws(Problem) -> (map: ValueMap, keys: [Text]) {
    let (value, keys) = try ordered(bytes[...], keysOf: member, envelopeLimits(bytes, ServerLimit.documentValues))
    return (try map(value), keys)
  }

  /// With its keys in the order of the text, where it is an object.
  static func ordered(_ text: Text) throws(Problem) -> (value: Value, keys: [Text]) {
    let bytes = text.bytes
    return try ordered(bytes[...], keysOf: nil, ExtendedJSON.Limits(byteCount: bytes.count))
  }

  private static func ordered(
    _ bytes: ArraySlice<UInt8>, keysOf member: Text?, _ limits: ExtendedJSON.Limits
  ) throws(Problem) -> (value: Value, keys: [Text]) {
    do throws(JSONError) {
      return try ExtendedJSON.parse(bytes, keysOf: member, limits: limits, operators: .allowed)
    } catch {
      throw Problem(error)
    }
  }

  private static func envelopeLimits(_ bytes: [UInt8], _ valueLimit: Int) -> ExtendedJSON.Limits {
    ExtendedJSON.Limits(
      byteCount: bytes.count, depth: Value.depthLimit + envelopeDepth, valueCount: valueLimit)
  }

  static func value(_ text: Text) throws(Problem) -> Value {
    do throws(JSONError) {
      let bytes = text.bytes
      return try ExtendedJSON.parse(bytes, limits: ExtendedJSON.Limits(byteCount: bytes.count), operators: .allowed)
    } catch {
      throw Problem(error)
    }
  }

  private static func map(
    _ bytes: ArraySlice<UInt8>, _ limits: ExtendedJSON.Limits, operators: ExtendedJSON.OperatorKeys
  ) throws(Problem) -> ValueMap {
    let value: Value
    do throws(JSONError) {
      value = try ExtendedJSON.parse(bytes, limits: limits, operators: operators)
    } catch {
      throw Problem(error)
    }
    return try map(value)
  }

  private static func map(_ value: Value) throws(Problem) -> ValueMap {
    guard case .map(let map) = value else { throw .badRequest("the body must be a JSON object") }
    return map
  }
}

extension Problem {
  init(_ error: JSONError) {
    let kind: Kind =
      switch error.kind {
      case .tooLarge, .tooManyValues: .tooLarge
      case .tooDeep, .keyTooLong, .operatorKey, .unsupportedType, .integerOutOfRange, .doubleOutOfRange, .nulInKey:
        .unprocessable
      default: .badRequest
      }
    self.init(kind, error.message)
    switch error.kind {
    case .tooLarge(_, let limit), .keyTooLong(_, let limit): (self.limit, unit) = (limit, "bytes")
    case .tooDeep(let limit): (self.limit, unit) = (limit, "levels")
    case .tooManyValues(let limit): (self.limit, unit) = (limit, "values")
    default: break
    }
    place = Place(line: error.line, column: error.column, offset: error.offset)
  }
}

extension ValueMap {
  init(members: KeyValuePairs<Text, Value>) {
    self.init()
    for (key, value) in members { self[key] = value }
  }
}

extension Value {
  /// An object from members in any order.
  package static func object(_ members: KeyValuePairs<Text, Value>) -> Value { .map(ValueMap(members: members)) }

  package static func text(_ string: String) -> Value { .string(Text(string)) }
}
