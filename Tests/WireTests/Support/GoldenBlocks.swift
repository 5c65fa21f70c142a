import Foundation

/// The byte examples of `Docs/PROTOCOL.md`: fenced blocks whose info string is `golden NAME`, with hexadecimal digits.
/// Text after `#` explains and does not count. So the document cannot drift from the code.
enum GoldenBlocks {
  static let all: [String: [UInt8]] = read()

  private static func read() -> [String: [UInt8]] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    guard let text = try? String(contentsOf: root.appending(path: "Docs/PROTOCOL.md"), encoding: .utf8) else {
      return [:]
    }
    var blocks: [String: [UInt8]] = [:]
    var open: (name: String, digits: String)?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```golden ") {
        open = (String(line.dropFirst("```golden ".count)), "")
      } else if line.hasPrefix("```"), let block = open {
        blocks[block.name] = bytes(block.digits)
        open = nil
      } else {
        open?.digits += line.prefix { $0 != "#" }
      }
    }
    return blocks
  }
}
