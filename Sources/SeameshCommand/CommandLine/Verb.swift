/// One thing that the command does. The table of these drives parsing, help, completions and the manual page.
struct Verb: Sendable {
  let name: String
  let summary: String
  /// Paragraphs of help beyond the summary.
  let details: [String]
  let operands: [Operand]
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
    _ name: String, _ summary: String, details: [String] = [], operands: [Operand] = [],
    options: [OptionSpecification] = [], examples: [Example],
    run: @escaping @Sendable (Invocation, Context) throws(Failure) -> Void
  ) {
    (self.name, self.summary, self.details) = (name, summary, details)
    (self.operands, self.options, self.examples) = (operands, options, examples)
    self.run = run
  }

  var allOptions: [OptionSpecification] { options + globalOptions }

  var synopsis: String {
    (["seamesh", name] + (options.isEmpty ? [] : ["[OPTION]..."]) + operands.map(\.synopsis)).joined(separator: " ")
  }
}

/// Options of every verb. They may stand before the verb too.
let globalOptions: [OptionSpecification] = [
  OptionSpecification(
    "data", .directory("DIR"), "data directory; otherwise SEAMESH_DATA, otherwise seamesh in the XDG data home"),
  OptionSpecification("json", .none, "output for machines: one JSON value, or one on each line"),
  OptionSpecification(
    "log-level", .choice("LEVEL", ["error", "warning", "info", "debug"]), "how much is logged", configurable: true),
  OptionSpecification("log-file", .file("FILE"), "log to FILE instead of standard error", configurable: true),
  OptionSpecification("help", .none, "show this help (also -h)"),
  OptionSpecification("version", .none, "show the version"),
]
