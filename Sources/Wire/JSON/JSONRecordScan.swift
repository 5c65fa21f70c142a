import Replication

/// Follows one object from its opening to its closing brace. It refuses early what cannot become well formed, so that
/// a record that lost its end does not take the next ones with it.
struct JSONRecordScan: Sendable {
  enum Outcome { case more, complete, failed(JSONError.Kind) }

  /// Wrappers are objects that do not count as levels of a document: there are more braces than levels.
  private static let depthLimit = 4 * Value.depthLimit

  /// The opening brackets.
  private var open: [UInt8] = []
  private var isInString = false
  private var isEscaped = false
  /// The last byte outside strings that is no white space.
  private var previous: UInt8 = 0

  mutating func take(_ byte: UInt8) -> Outcome {
    if isInString { return takeInString(byte) }
    switch byte {
    case 0x20, 0x09, 0x0a, 0x0d: return .more
    case UInt8(ascii: "\""): isInString = true
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      guard mayOpen else { return .failed(.unexpectedByte(byte, expected: "',' or a closing bracket")) }
      guard open.count < JSONRecordScan.depthLimit else { return .failed(.tooDeep(limit: Value.depthLimit)) }
      open.append(byte)
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      // Each closing bracket is two behind its opening one in ASCII.
      guard let last = open.popLast(), last + 2 == byte else {
        return .failed(.unexpectedByte(byte, expected: "the other closing bracket"))
      }
      if open.isEmpty { return .complete }
    default: break
    }
    previous = byte
    return .more
  }

  private mutating func takeInString(_ byte: UInt8) -> Outcome {
    if isEscaped {
      isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      isInString = false
    }
    return byte < 0x20 ? .failed(.controlCharacter(byte)) : .more
  }

  /// Whether an object or array may stand here.
  private var mayOpen: Bool {
    switch open.last {
    case UInt8(ascii: "{"): previous == UInt8(ascii: ":")
    case UInt8(ascii: "["): previous == UInt8(ascii: "[") || previous == UInt8(ascii: ",")
    default: true
    }
  }
}

/// Looks for the end of a broken record: the bracket that closes it, if brackets are sound, or the next line that
/// begins with a brace no further to the right than the record did, whichever comes first. A line break ends a string,
/// since JSON has none inside strings.
struct JSONSkipScan: Sendable {
  enum Extent { case line, object, element, everything }
  /// `resumeBefore`: this byte is not part of what was skipped.
  enum Outcome { case more, resumeBefore, resumeAfter }

  let extent: Extent
  /// Whether it was the next line that ended the search.
  private(set) var foundLine = false
  private let column: Int
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  /// White space since the last line break; nil behind other bytes, and on the first line.
  private var indentation: Int?

  /// `column` is that of the record's first byte, from 1.
  init(_ extent: Extent, column: Int) { (self.extent, self.column) = (extent, column) }

  mutating func take(_ byte: UInt8) -> Outcome {
    if extent == .everything { return .more }
    if byte == UInt8(ascii: "\n") {
      (isInString, isEscaped, indentation) = (false, false, 0)
      return extent == .line ? .resumeAfter : .more
    }
    if let spaces = indentation {
      if byte == UInt8(ascii: "{"), spaces < column {
        foundLine = true
        return .resumeBefore
      }
      switch byte {
      case 0x20, 0x09, 0x0d: indentation = spaces + 1
      // Some writers put the comma between two records in front of the second.
      case UInt8(ascii: ",") where extent == .element && depth > 0: return .more
      default: indentation = nil
      }
    }
    return isInString ? takeInString(byte) : takeOutsideStrings(byte)
  }

  private mutating func takeInString(_ byte: UInt8) -> Outcome {
    if isEscaped {
      isEscaped = false
    } else {
      isEscaped = byte == UInt8(ascii: "\\")
      isInString = byte != UInt8(ascii: "\"")
    }
    return .more
  }

  private mutating func takeOutsideStrings(_ byte: UInt8) -> Outcome {
    switch byte {
    case UInt8(ascii: "\""): isInString = true
    case UInt8(ascii: ","): if extent == .element, depth == 0 { return .resumeBefore }
    case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      if extent == .element, depth == 0, byte == UInt8(ascii: "]") { return .resumeBefore }
      depth = max(0, depth - 1)
      if extent == .object, depth == 0 { return .resumeAfter }
    default: break
    }
    return .more
  }
}
