import Foundation
import Replication
import Seamesh
import Testing
import Wire

@testable import SeameshCommand

@Suite("What is made from the table of verbs")
struct HelpTests {
  @Test(
    "every verb has an example that the parser understands, and help that names its options",
    arguments: verbTable.map(\.name))
  func verbs(name: String) throws {
    let verb = try Parser(verbs: verbTable).verb(name)
    let text = HelpText.verb(verb)
    #expect(!verb.examples.isEmpty)
    for option in verb.allOptions { #expect(text.contains("--\(option.name)")) }
    for example in verb.examples {
      #expect(text.contains(example.line))
      let words = try shellWords(example.line)
      let start = try #require(words.firstIndex(of: "seamesh"))
      let end = words[start...].firstIndex { ["|", ">", "&&"].contains($0) } ?? words.endIndex
      guard case .run(let invocation) = try Parser(verbs: verbTable).parse(Array(words[(start + 1)..<end])) else {
        Issue.record("not a run: \(example.line)")
        continue
      }
      #expect(invocation.verb == name)
    }
    for line in text.split(separator: "\n") where !verb.examples.contains(where: { line.contains($0.line) }) {
      #expect(line.count <= HelpText.width || !line.contains(" "), "\(line)")
    }
  }

  @Test("the help of find names every operator of a filter, and those that are looked for in vain")
  func filterOperators() throws {
    let text = HelpText.verb(try Parser(verbs: verbTable).verb("find"))
    for name in Filter.operators + ["$regex", "$elemMatch", "$size", "$all", "$type"] { #expect(text.contains(name)) }
  }

  @Test("the help of run says that known addresses are dialled without discovery, too")
  func undiscovered() throws {
    let text = HelpText.verb(try Parser(verbs: verbTable).verb("run")).split(whereSeparator: \.isWhitespace)
    #expect(
      text.joined(separator: " ").contains("where peers were met before, and where --peer says, they are dialled"))
  }

  @Test("what is for tests of the node alone stands in no help, manual page or completion")
  func forTestsAlone() {
    var texts = verbTable.map(HelpText.verb) + [HelpText.overview(verbTable), ManualPage.text(verbTable, version: "1")]
    texts += Completions.shells.map { Completions.script(for: $0, verbTable) }
    #expect(texts.allSatisfy { !$0.contains(TestBuildSwitch.variable) && !$0.contains("test build") })
  }

  @Test("the overview lists every verb")
  func overview() {
    let text = HelpText.overview(verbTable)
    for verb in verbTable { #expect(text.contains("  \(verb.name) ")) }
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= HelpText.width })
    #expect(Set(verbTable.map(\.name)).count == verbTable.count)
  }

  @Test("one name of an option takes one kind of value in all verbs, as completion needs it")
  func optionNames() {
    var seen: [String: OptionSpecification.Value] = [:]
    for option in verbTable.flatMap(\.allOptions) {
      #expect(seen[option.name, default: option.value] == option.value, "--\(option.name)")
      seen[option.name] = option.value
    }
  }

  @Test("the manual page has no line that roff would take for a request by mistake")
  func manual() {
    let page = ManualPage.text(verbTable, version: "1.2-3")
    let requests: Set<Substring> = [
      ".TH", ".SH", ".SS", ".B", ".I", ".RI", ".TP", ".PP", ".RS", ".RE", ".nf", ".fi", ".br",
    ]
    for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
      #expect(requests.contains(line.split(separator: " ")[0]), "\(line)")
    }
    for name in verbTable.map({ $0.name.replacing("-", with: "\\-") }) {
      #expect(page.contains(".SS \(name)\n.B seamesh \(name)"))
    }
    #expect(page.contains("1.2\\-3"))
  }

  @Test("the completion script of bash completes verbs, options, choices and files")
  func bash() throws {
    func complete(_ words: String...) throws -> Set<String> {
      let list = words.map { "'\($0)'" }.joined(separator: " ")
      let script =
        Completions.script(for: "bash", verbTable) + """
          COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); _seamesh; printf '%s\\n' "${COMPREPLY[@]}"
          """
      let result = try run("/bin/bash", ["-c", script])
      #expect(result.status == 0 && result.error.isEmpty, "\(result.error)")
      return Set(result.output.split(separator: "\n").map(String.init))
    }
    #expect(try complete("seamesh", "exp") == ["export"])
    #expect(try complete("seamesh", "--data", "/tmp", "stat") == ["status"])
    #expect(try complete("seamesh", "find", "p", "c", "--fil") == ["--filter"])
    #expect(try complete("seamesh", "completion", "z") == ["zsh"])
    #expect(try complete("seamesh", "status", "--log-level", "de") == ["debug"])
    #expect(try complete("seamesh", "status", "--log-level", "=", "de") == ["debug"])
    #expect(try complete("seamesh", "status", "--log-level", "=").contains("debug"))
    #expect(try complete("seamesh", "--data", "=", "/tmp", "stat") == ["status"])
    #expect(try complete("seamesh", "status", "--data", "/us").contains("/usr"))
  }

  @Test("files and directories complete where an option takes one, and after a verb's words are through")
  func bashFiles() throws {
    let directory = NSTemporaryDirectory() + "/complete-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: directory + "/inner", withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try "".write(toFile: directory + "/report.json", atomically: false, encoding: .utf8)
    func complete(_ words: String...) throws -> Set<String> {
      let list = words.map { "'\($0)'" }.joined(separator: " ")
      let script =
        Completions.script(for: "bash", verbTable) + """
          cd '\(directory)'; COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); _seamesh
          printf '%s\\n' "${COMPREPLY[@]}"
          """
      let result = try run("/bin/bash", ["-u", "-c", script])
      #expect(result.status == 0 && result.error.isEmpty, "\(result.error)")
      return Set(result.lines)
    }
    #expect(try complete("seamesh", "import", "p", "c", "rep") == ["report.json"])
    #expect(try complete("seamesh", "put", "--file", "") == ["inner", "report.json"])
    #expect(try complete("seamesh", "status", "--data", "") == ["inner"])
    #expect(try complete("seamesh", "put", "--keep") == ["--keep-absent"])
    #expect(try complete("seamesh", "patch", "--ups") == ["--upsert"])
    #expect(try complete("seamesh", "help", "nothing-such").isEmpty)
  }

  @Test("the script of each shell is one that the shell understands, where it is there", arguments: Completions.shells)
  func syntax(shell: String) throws {
    guard let path = ["/usr/bin/", "/bin/"].map({ $0 + shell }).first(where: FileManager.default.isExecutableFile)
    else {
      return
    }
    let result = try run(path, ["-n"], input: Completions.script(for: shell, verbTable))
    #expect(result.status == 0 && result.error.isEmpty, "\(result.error)")
  }

  @Test("a text is wrapped at the width, and a word that is longer stands on a line of its own")
  func wrapping() {
    let words = (0..<40).map { String(repeating: "x", count: $0 % 9 + 1) }
    let text = HelpText.wrapped(words.joined(separator: " "), indent: 4)
    let lines = text.split(separator: "\n")
    #expect(lines.count > 1 && lines.allSatisfy { $0.hasPrefix("    x") && $0.count <= HelpText.width })
    #expect(text.split { $0 == " " || $0 == "\n" }.map(String.init) == words)
    let long = String(repeating: "y", count: 100)
    #expect(HelpText.wrapped("a \(long) b", indent: 2) == "  a\n  \(long)\n  b")
    #expect(HelpText.wrapped("", indent: 2) == "  ")
  }

  @Test("the manual page reads without a complaint, and keeps every dash and backslash of the examples")
  func manualReads() throws {
    let page = ManualPage.text(verbTable, version: seameshVersion)
    #expect(!page.split(separator: "\n").contains { $0.contains("seamesh ") && $0.contains(" --") })
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/groff") else { return }
    let result = try run(
      "/usr/bin/groff", ["-man", "-Tutf8", "-ww", "-P-c", "-rLL=400n"], input: page,
      environment: ["PATH": "/usr/bin:/bin"])
    #expect(result.status == 0 && result.error.isEmpty, "\(result.error)")
    for verb in verbTable {
      for example in verb.examples {
        #expect(result.output.contains(example.line.prefix(60)), "\(example.line)")
      }
    }
    for meaning in ["not found", "not permitted", "no node could be reached"] {
      #expect(result.output.contains(meaning))
    }
  }

  @Test("help goes to standard output with status 0, for a verb, for all, and before a mistake is looked at")
  func help() throws {
    guard isCommandBuilt else { return }
    for arguments in [["help"], ["--help"], ["-h"], ["help", "put"], ["put", "--help"], ["put", "-h", "x"]] {
      let result = try run(commandPath, arguments, environment: ["HOME": "/nonexistent"])
      #expect(result.status == 0 && result.error.isEmpty && result.output.hasPrefix("Usage: seamesh "), "\(arguments)")
    }
    let unknown = try run(commandPath, ["help", "ptu"])
    #expect(unknown.isRefusal && unknown.status == 2 && unknown.error.contains("did you mean put?"))
    #expect(try run(commandPath, ["version", "--json"]).output == "{\"version\":\"\(seameshVersion)\"}\n")
    let all = try ExtendedJSON.parse(Array(run(commandPath, ["help", "--json"]).output.utf8)).items
    #expect(all.compactMap { $0.map?["verb"]?.shownText } == verbTable.map(\.name))
    let one = try ExtendedJSON.parseMap(Array(run(commandPath, ["put", "--help", "--json"]).output.utf8))
    #expect(one["verb"] == .string("put") && one.list("options").contains { $0["option"] == .string("--if-match") })
    #expect(try run(commandPath, ["--version"]).output == "seamesh \(seameshVersion)\n")
    let bare = try run(commandPath, [])
    #expect(bare.isRefusal && bare.status == 2)
  }

  @Test("the scripts of zsh and fish name every verb and option")
  func otherShells() {
    for shell in ["zsh", "fish"] {
      let script = Completions.script(for: shell, verbTable)
      for verb in verbTable { #expect(script.contains(verb.name)) }
      for option in verbTable.flatMap(\.allOptions) { #expect(script.contains(option.name)) }
    }
  }

  @Test("figures are shown in units that fit")
  func figures() {
    #expect(byteCount(999) == "999 B" && byteCount(1_500) == "1.5 kB" && byteCount(2_340_000_000) == "2.3 GB")
    #expect(duration(milliseconds: 999) == "0 s" && duration(milliseconds: 3_725_000) == "1 h 2 min")
    #expect(ProgressBar.line("x", done: 5, total: nil, unit: "pages") == "x 5 pages")
    #expect(ProgressBar.line("x", done: 1, total: 2, unit: "").hasSuffix(" 50 %"))
    #expect(ProgressBar.line("x", done: 9, total: 2, unit: "").hasSuffix(" 100 %"))
  }

  /// The words of a shell line, single quotes undone.
  private func shellWords(_ line: String) throws -> [String] {
    let line = line.replacing("<(", with: "").replacing(")", with: "")
    let result = try run(
      "/bin/bash", ["-c", "printf '%s\\n' " + line.replacing("|", with: "'|'").replacing(">", with: "'>'")])
    return result.output.split(separator: "\n").map(String.init)
  }
}
