import Foundation

/// `Docs/BACKEND.md` as those read it who copy from it.
struct BackendPage {
  private let sections: [String: String]

  init() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "Docs/BACKEND.md"), encoding: .utf8)
    let parts = text.components(separatedBy: "\n## ").dropFirst().map { part in
      let lines = part.components(separatedBy: "\n")
      return (lines[0], lines.dropFirst().joined(separator: "\n"))
    }
    sections = Dictionary(parts) { first, _ in first }
  }

  func text(of section: String) -> String { sections[section] ?? "" }

  /// SQL of a section's indented blocks, without what is said beside it.
  func statements(of section: String) -> [String] {
    let code = text(of: section).components(separatedBy: "\n").filter { $0.hasPrefix("    ") }.map { line in
      line.range(of: "--").map { String(line[..<$0.lowerBound]) } ?? line
    }
    return code.joined(separator: "\n").components(separatedBy: ";")
      .map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }.filter { !$0.isEmpty }
  }

  /// What stands between backquotes in a piece of text.
  static func names(in text: some StringProtocol) -> [String] {
    text.components(separatedBy: "`").enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
  }
}
