import CUTF8Proc
import Glibc
import Replication

/// Which differences between texts do not count, as in the `[cd]` of predicates on Apple's platforms.
struct TextFolding: OptionSet, Sendable, Hashable {
  let rawValue: UInt8

  static let letterCase = TextFolding(rawValue: 1)
  static let diacritics = TextFolding(rawValue: 2)

  /// UTF-8 of the folded text: canonical decomposition, without combining marks and with case folded where asked.
  func fold(_ text: Text) -> [UInt8] {
    if isEmpty { return text.bytes }
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      guard contains(.letterCase) else { return text.bytes }
      return text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }
    var out: [UInt8] = []
    for scalar in TextFolding.decomposed(text.bytes).unicodeScalars {
      if contains(.diacritics), scalar.properties.canonicalCombiningClass != .notReordered { continue }
      if contains(.letterCase) {
        // Upper case first, so that letters with several small forms (σ and ς, ß) become one.
        out.append(contentsOf: scalar.properties.uppercaseMapping.lowercased().utf8)
      } else {
        out.append(contentsOf: String(scalar).utf8)
      }
    }
    return out
  }

  /// In normalization form D of Unicode. Valid UTF-8 fails for want of memory alone; then the text stays as it is.
  private static func decomposed(_ text: [UInt8]) -> String {
    var made: UnsafeMutablePointer<UInt8>?
    defer { free(made) }
    let options = utf8proc_option_t(UTF8PROC_DECOMPOSE.rawValue | UTF8PROC_STABLE.rawValue)
    let count = utf8proc_map(text, text.count, &made, options)
    guard count >= 0 else { return String(decoding: text, as: UTF8.self) }
    return String(decoding: UnsafeBufferPointer(start: made, count: count), as: UTF8.self)
  }
}

/// Text to look for inside others.
struct TextNeedle: Sendable, Hashable {
  let folding: TextFolding
  private let bytes: [UInt8]

  init(_ text: Text, folding: TextFolding) {
    self.folding = folding
    bytes = folding.fold(text)
  }

  func isFound(in text: Text) -> Bool {
    guard let first = bytes.first else { return true }
    let folded = folding.fold(text)
    guard folded.count >= bytes.count else { return false }
    return (0...folded.count - bytes.count).contains { start in
      folded[start] == first && folded[start..<start + bytes.count].elementsEqual(bytes)
    }
  }
}
