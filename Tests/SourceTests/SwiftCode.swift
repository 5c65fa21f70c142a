/// Swift source without what is not code: comments and the content of strings become spaces, lines stay where they are.
///
/// Code inside interpolations is blanked with the string around it, and regular expression literals are not known: the
/// sources here have none.
struct SwiftCode {
  let lines: [String]

  init(_ source: String) {
    var scanner = Scanner(bytes: Array(source.utf8))
    scanner.run()
    lines = String(decoding: scanner.out, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
  }

  private struct Scanner {
    let bytes: [UInt8]
    var out: [UInt8] = []
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func run() {
      while position < bytes.count {
        switch bytes[position] {
        case UInt8(ascii: "/") where starts("//"): blank(until: { $0.bytes[$0.position] == UInt8(ascii: "\n") })
        case UInt8(ascii: "/") where starts("/*"): blankComment()
        case UInt8(ascii: "\""), UInt8(ascii: "#"):
          if let hashes = stringHashes { blankString(hashes) } else { copy() }
        default: copy()
        }
      }
    }

    private mutating func copy() {
      out.append(bytes[position])
      position += 1
    }

    private func starts(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    /// Signs `#` before a quotation mark here; nil where no string begins.
    private var stringHashes: Int? {
      let hashes = bytes[position...].prefix { $0 == UInt8(ascii: "#") }.count
      let quote = position + hashes
      return quote < bytes.count && bytes[quote] == UInt8(ascii: "\"") ? hashes : nil
    }

    private mutating func blank(_ count: Int) {
      for _ in 0..<count where position < bytes.count {
        out.append(bytes[position] == UInt8(ascii: "\n") ? UInt8(ascii: "\n") : UInt8(ascii: " "))
        position += 1
      }
    }

    private mutating func blank(until isEnd: (Scanner) -> Bool) {
      while position < bytes.count, !isEnd(self) { blank(1) }
    }

    private mutating func blankComment() {
      var depth = 0
      repeat {
        if starts("/*") { depth += 1 } else if starts("*/") { depth -= 1 }
        blank(starts("/*") || starts("*/") ? 2 : 1)
      } while depth > 0 && position < bytes.count
    }

    private mutating func blankString(_ hashes: Int) {
      let fence = String(repeating: "#", count: hashes)
      blank(hashes)
      let quotes = starts("\"\"\"") ? "\"\"\"" : "\""
      blank(quotes.utf8.count)
      while position < bytes.count, !starts(quotes + fence) {
        if starts("\\" + fence + "(") {
          blank(hashes + 2)
          blankInterpolation()
        } else {
          blank(starts("\\" + fence) ? hashes + 2 : 1)
        }
      }
      blank(quotes.utf8.count + hashes)
    }

    /// From behind the opening parenthesis to behind the closing one; strings may stand inside.
    private mutating func blankInterpolation() {
      var depth = 1
      while depth > 0, position < bytes.count {
        if let hashes = stringHashes {
          blankString(hashes)
          continue
        }
        if bytes[position] == UInt8(ascii: "(") { depth += 1 }
        if bytes[position] == UInt8(ascii: ")") { depth -= 1 }
        blank(1)
      }
    }
  }
}
