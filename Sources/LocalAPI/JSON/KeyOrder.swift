import Replication

/// The keys of an object in the order in which its text has them: a sort order such as `{"date":-1,"name":1}` means
/// something by it, while a ``ValueMap`` keeps its keys in byte order.
///
/// For text that the parser has accepted: what is not JSON gives some list, never a trap.
struct KeyOrder {
  private let bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// The text of each member's value, with its key as it stands, escapes undone.
  var members: [(key: Text, value: ArraySlice<UInt8>)] {
    var members: [(key: Text, value: ArraySlice<UInt8>)] = []
    guard let open = bytes.firstIndex(of: UInt8(ascii: "{")) else { return [] }
    var index = open + 1
    while let quote = bytes[index...].firstIndex(of: UInt8(ascii: "\"")) {
      let keyEnd = endOfString(from: quote)
      guard let colon = bytes[keyEnd...].firstIndex(of: UInt8(ascii: ":")) else { break }
      let valueEnd = endOfValue(from: colon + 1)
      if let key = string(bytes[quote..<keyEnd]) { members.append((key, bytes[(colon + 1)..<valueEnd])) }
      guard valueEnd < bytes.endIndex, bytes[valueEnd] == UInt8(ascii: ",") else { break }
      index = valueEnd + 1
    }
    return members
  }

  private func string(_ quoted: ArraySlice<UInt8>) -> Text? {
    guard let text = String(validating: quoted, as: UTF8.self),
      case .string(let key)? = try? JSON.value(Text(text))
    else { return nil }
    return key
  }

  /// The index after the closing quote of the string that opens at `start`.
  private func endOfString(from start: Int) -> Int {
    var index = start + 1
    while index < bytes.endIndex {
      switch bytes[index] {
      case UInt8(ascii: "\\"): index += 2
      case UInt8(ascii: "\""): return index + 1
      default: index += 1
      }
    }
    return bytes.endIndex
  }

  /// The index of the comma or closing bracket that ends the value.
  private func endOfValue(from start: Int) -> Int {
    var (index, depth) = (start, 0)
    while index < bytes.endIndex {
      switch bytes[index] {
      case UInt8(ascii: "\""):
        index = endOfString(from: index)
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if depth == 0 { return index }
        depth -= 1
      case UInt8(ascii: ",") where depth == 0: return index
      default: break
      }
      index += 1
    }
    return bytes.endIndex
  }
}
