import Foundation

/// One rule over the text of a file: the numbers, from 1, of the lines that break it.
struct SourceRule: Sendable {
  let lines: @Sendable (String) -> [Int]

  func places(in files: [(path: String, text: String)]) -> [String] {
    files.flatMap { file in lines(file.text).map { "\(file.path):\($0)" } }
  }
}

extension SourceRule {
  /// Lines of code, without comments and strings, that match a pattern.
  private static func code(_ pattern: String) -> SourceRule {
    SourceRule { text in numbers(text, pattern) { SwiftCode($0).lines } }
  }

  /// Lines of text that match a pattern.
  private static func text(_ pattern: String) -> SourceRule {
    SourceRule { text in numbers(text, pattern) { $0.components(separatedBy: "\n") } }
  }

  private static func numbers(_ text: String, _ pattern: String, _ split: (String) -> [String]) -> [Int] {
    guard let expression = try? NSRegularExpression(pattern: pattern) else {
      preconditionFailure("not a regular expression: \(pattern)")
    }
    func matches(_ line: String) -> Bool {
      expression.firstMatch(in: line, range: NSRange(line.startIndex..., in: line)) != nil
    }
    let lines = split(text)
    return lines.indices.filter { matches(lines[$0]) }.map { $0 + 1 }
  }

  /// Imports beyond the given modules.
  static func imports(beyond allowed: [String]) -> SourceRule {
    code(
      "^\\s*(@\\S+\\s+)*((package|public|internal|private|fileprivate)\\s+)?import\\s+(?!(\(allowed.joined(separator: "|")))$)"
    )
  }

  /// Foundation, or a part of it.
  static let foundation = code("\\bimport\\s+(\\w+\\s+)?`?(_|Core)?Foundation")

  /// Clocks that nobody handed in.
  static let clocks = code("\\bDate\\(\\)|ContinuousClock|SuspendingClock")

  /// Chance that comes from the system: a generator is neither made from a seed nor handed in.
  static let unseededChance = code(
    "SystemRandomNumberGenerator|\\.(random|randomElement|shuffled|shuffle)\\((?!.*using:)")

  /// What ends the process where an error should have been thrown.
  static let traps = code("\\btry!|\\bas!|\\bfatalError\\(|[\\w)\\]}?]!(?!=)")

  /// Marks of unfinished work. Put together here, so that this file has none.
  static let markers = text(
    "\\b(" + ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"].joined(separator: "|") + ")\\b")

  /// Promises to the compiler that no comment on the line, or on the one before, explains.
  static let unexplainedPromises = SourceRule { text in
    let lines = text.components(separatedBy: "\n")
    let code = SwiftCode(text).lines
    return code.indices.filter { index in
      guard code[index].contains("@unchecked Sendable") || code[index].contains("nonisolated(unsafe)") else {
        return false
      }
      // What the code lost against the text is a comment: strings do not begin with these signs.
      let isCommented = lines[index].contains("//") && !code[index].contains("//")
      let before = index > 0 ? lines[index - 1].trimmingCharacters(in: .whitespaces) : ""
      return !isCommented && !before.hasPrefix("//")
    }.map { $0 + 1 }
  }

  /// Paths that exist on one machine only: this one's, or anybody's home.
  static func machinePaths(root: String, home: String) -> SourceRule {
    let shared = ["/", "/tmp", "/usr", "/opt", "/home", "/Users", "/var", "/srv", "/mnt"]
    let own = [root, (root as NSString).deletingLastPathComponent, home].filter { !shared.contains($0) && !$0.isEmpty }
    let patterns = own.map { NSRegularExpression.escapedPattern(for: $0) + "/" }
    return text("(^|[^\\w.])(" + (patterns + ["/home" + "/\\w+/", "/Users" + "/\\w+/"]).joined(separator: "|") + ")")
  }
}
