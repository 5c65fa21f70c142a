import CUTF8Proc
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
    for scalar in TextFolding.decomposed(text) {
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

  /// In normalization form D of Unicode. utf8proc takes letters apart, one by one; it would bring marks into order by comparing each with
  /// each, and a text may have a million of them.
  private static func decomposed(_ text: Text) -> [Unicode.Scalar] {
    var out: [Unicode.Scalar] = []
    var parts = [utf8proc_int32_t](repeating: 0, count: partLimit)
    for scalar in text.string.unicodeScalars {
      var boundary = Int32(0)
      let count = utf8proc_decompose_char(
        utf8proc_int32_t(scalar.value), &parts, partLimit, utf8proc_option_t(UTF8PROC_DECOMPOSE.rawValue), &boundary)
      guard 1...partLimit ~= count else {
        out.append(scalar)
        continue
      }
      out.append(contentsOf: parts.prefix(count).compactMap { Unicode.Scalar(UInt32($0)) })
    }
    orderMarks(&out)
    return out
  }

  /// Unicode has no letter of more than four parts.
  private static let partLimit = 8

  /// Marks that follow on one another, by their class; those of one class stay as they are.
  private static func orderMarks(_ scalars: inout [Unicode.Scalar]) {
    let classes = scalars.map(\.properties.canonicalCombiningClass)
    var start = 0
    while let first = classes[start...].firstIndex(where: { $0 != .notReordered }) {
      let end = classes[first...].firstIndex(of: .notReordered) ?? classes.endIndex
      if end - first > 1 {
        let order = (first..<end).sorted { (classes[$0].rawValue, $0) < (classes[$1].rawValue, $1) }
        scalars.replaceSubrange(first..<end, with: order.map { scalars[$0] })
      }
      start = end
    }
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
