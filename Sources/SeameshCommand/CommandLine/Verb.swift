/// One thing that the command does. The table of these drives parsing, help, completions and the manual page.
struct Verb: Sendable {
  let name: String
  let summary: String
  /// Paragraphs of help beyond the summary.
  let details: [String]
  let operands: [Operand]
  /// What follows the verb in its usage, where the operands alone do not say it.
  let usages: [String]
  let options: [OptionSpecification]
  /// Command lines with what they do.
  let examples: [Example]
  let run: @Sendable (Invocation, Context) throws(Failure) -> Void

  struct Example: Sendable {
    let line: String
    let does: String
    init(_ line: String, _ does: String) { (self.line, self.does) = (line, does) }
  }

  init(
    _ name: String, _ summary: String, details: [String] = [], operands: [Operand] = [], usages: [String] = [],
    options: [OptionSpecification] = [], examples: [Example],
    run: @escaping @Sendable (Invocation, Context) throws(Failure) -> Void
  ) {
    (self.name, self.summary, self.details) = (name, summary, details)
    (self.operands, self.usages, self.options, self.examples) = (operands, usages, options, examples)
    self.run = run
  }

  var allOptions: [OptionSpecification] { options + globalOptions }

  var synopses: [String] {
    let standard = ((options.isEmpty ? [] : ["[OPTION]..."]) + operands.map(\.synopsis)).joined(separator: " ")
    return (usages.isEmpty ? [standard] : usages).map { $0.isEmpty ? "seamesh \(name)" : "seamesh \(name) \($0)" }
  }

  /// The summary as a sentence.
  var sentence: String { summary.prefix(1).uppercased() + summary.dropFirst() + "." }
}

/// Options of every verb. They may stand before the verb too.
let globalOptions: [OptionSpecification] = [
  OptionSpecification(
    "data", .directory("DIR"), "data directory; otherwise SEAMESH_DATA, otherwise seamesh in the XDG data home"),
  OptionSpecification("json", .none, "output for machines: one JSON value, or one on each line"),
  OptionSpecification(
    "log-level", .choice("LEVEL", ["error", "notice", "info", "debug"]), "how much is logged", configurable: true),
  OptionSpecification("log-file", .file("FILE"), "log to FILE instead of standard error", configurable: true),
  OptionSpecification("help", .none, "show this help (also -h)"),
  OptionSpecification("version", .none, "show the version"),
]
