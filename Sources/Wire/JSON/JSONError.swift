import Replication

/// Why a text is not the Extended JSON that a node accepts, and where.
package struct JSONError: Error, Sendable, Equatable {
  package enum Kind: Sendable, Equatable {
    case unexpectedEnd(expected: String)
    case unexpectedByte(UInt8, expected: String)
    case trailingContent
    case notAnObject
    case tooLarge(byteCount: Int, limit: Int)
    case tooDeep(limit: Int)
    case tooManyValues(limit: Int)
    case keyTooLong(byteCount: Int, limit: Int)
    case duplicateKey(Text)
    case nulInKey
    case invalidUTF8
    case loneSurrogate
    case invalidEscape
    case controlCharacter(UInt8)
    case invalidNumber
    case notFinite
    case integerOutOfRange
    case doubleOutOfRange
    /// A BSON type without a counterpart here, by the key that names it.
    case unsupportedType(Text)
    /// A wrapper whose content is not what it should be.
    case invalidContent(of: Text, expected: String)
    /// A wrapper's key among others.
    case misplacedWrapper(Text)
    /// An operator at the top of a document.
    case operatorKey(Text)
  }

  package let kind: Kind
  /// In bytes from the start of the text.
  package let offset: Int
  /// From 1.
  package let line: Int
  /// From 1, in code points.
  package let column: Int
  /// Keys and indices from the root, such as `crew[2].name`; empty at the root.
  package private(set) var path: String

  package init(_ kind: Kind, offset: Int, line: Int, column: Int, path: String = "") {
    (self.kind, self.offset, self.line, self.column, self.path) = (kind, offset, line, column, path)
  }

  /// Finds line and column of `offset`.
  init(_ kind: Kind, at offset: Int, in input: Span<UInt8>) {
    var (line, column) = (1, 1)
    for index in 0..<min(offset, input.count) {
      if input[index] == UInt8(ascii: "\n") {
        (line, column) = (line + 1, 1)
      } else if input[index] & 0xc0 != 0x80 {
        column += 1
      }
    }
    self.init(kind, offset: offset, line: line, column: column)
  }

  /// The same error in a text of which its own text is a part that starts at the given place.
  package func moved(toLine line: Int, column: Int, offset: Int) -> JSONError {
    JSONError(
      kind, offset: self.offset + offset, line: self.line + line - 1,
      column: self.line == 1 ? self.column + column - 1 : self.column, path: path)
  }

  func inside(key: Text) -> JSONError {
    var error = self
    let dot = path.isEmpty || path.hasPrefix("[") ? "" : "."
    error.path = JSONError.shown(key) + dot + path
    return error
  }

  func inside(index: Int) -> JSONError {
    var error = self
    let dot = path.isEmpty || path.hasPrefix("[") ? "" : "."
    error.path = "[\(index)]" + dot + path
    return error
  }

  /// One sentence with the place.
  package var message: String {
    let place = path.isEmpty ? "" : " (\(path))"
    return "Line \(line), column \(column)\(place): \(reason)."
  }

  private var reason: String {
    switch kind {
    case .unexpectedEnd(let expected): "the text ends where \(expected) should follow"
    case .unexpectedByte(let byte, let expected): "\(JSONError.shown(byte)) stands where \(expected) should"
    case .trailingContent: "there is more after the end of the value"
    case .notAnObject: "an object is needed here"
    case .tooLarge(let count, let limit): "\(count) bytes are more than the limit of \(limit)"
    case .tooDeep(let limit): "more than \(limit) levels of objects and arrays"
    case .tooManyValues(let limit): "more than \(limit) values, objects and arrays with what is in them"
    case .keyTooLong(let count, let limit): "a key of \(count) bytes is longer than the limit of \(limit)"
    case .duplicateKey(let key): "the key \(JSONError.shown(key)) stands twice in one object"
    case .nulInKey: "a key must not contain U+0000"
    case .invalidUTF8: "the bytes are not valid UTF-8"
    case .loneSurrogate: "half of a surrogate pair stands alone"
    case .invalidEscape: "this is no escape sequence of JSON"
    case .controlCharacter(let byte): "the control character \(JSONError.shown(byte)) must be escaped in a string"
    case .invalidNumber: "this is not a JSON number"
    case .notFinite: "NaN and infinity are not accepted"
    case .integerOutOfRange: "the integer does not fit in 64 bits"
    case .doubleOutOfRange: "the number is too large for a double"
    case .unsupportedType(let name): "the type \(JSONError.shown(name)) is not supported"
    case .invalidContent(let name, let expected): "\(JSONError.shown(name)) must hold \(expected)"
    case .misplacedWrapper(let name): "\(JSONError.shown(name)) cannot stand beside other keys"
    case .operatorKey(let name): "the operator \(JSONError.shown(name)) cannot be a field of a document"
    }
  }

  /// Keys and bytes are shown so that neither a long nor a strange one can spoil the sentence or the terminal.
  private static let shownKeyLimit = 40

  private static func shown(_ key: Text) -> String {
    let plain = key.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    if plain, !key.utf8.isEmpty, key.utf8.count <= shownKeyLimit { return key.string }
    var quoted: [UInt8] = []
    JSONWriter.appendString(String(key.string.unicodeScalars.prefix(shownKeyLimit)), to: &quoted)
    return "[" + String(decoding: quoted, as: UTF8.self) + "]"
  }

  private static func shown(_ byte: UInt8) -> String {
    (0x21..<0x7f).contains(byte) ? "'\(Character(Unicode.Scalar(byte)))'" : "byte 0x" + hexadecimal([byte])
  }
}

extension JSONError: CustomStringConvertible {
  package var description: String { message }
}
