import LocalAPI
import Replication
import Wire

let helpVerb = Verb(
  "help", "show help on all verbs, or on one", operands: [Operand("VERB", .optional)],
  examples: [.init("seamesh help import", "Shows the options of import with an example")]
) { invocation, context throws(Failure) in
  try showHelp(invocation.operand(0), context.terminal)
}

func showHelp(_ name: String?, _ terminal: Terminal) throws(Failure) {
  let verb = try name.map { name throws(Failure) in try Parser(verbs: verbTable).verb(name) }
  guard !terminal.isJSON else {
    return terminal.print(ExtendedJSON.text(verb?.description ?? .array(verbTable.map(\.description))))
  }
  terminal.write((verb.map(HelpText.verb) ?? HelpText.overview(verbTable)).utf8)
}

let versionVerb = Verb(
  "version", "show the version", examples: [.init("seamesh version", "Shows which build this is")]
) { _, context throws(Failure) in
  showVersion(context.terminal)
}

func showVersion(_ terminal: Terminal) {
  terminal.print(terminal.isJSON ? "{\"version\":\"\(seameshVersion)\"}" : "seamesh \(seameshVersion)")
}

let completionVerb = Verb(
  "completion", "write a completion script for a shell",
  operands: [Operand("SHELL", kind: .choice(Completions.shells))],
  examples: [.init("source <(seamesh completion bash)", "Completes verbs and options in this shell")]
) { invocation, context throws(Failure) in
  context.terminal.write(Completions.script(for: invocation.required(0), verbTable).utf8)
}

let manualVerb = Verb(
  "manual", "write the manual page",
  examples: [.init("seamesh manual | man -l -", "Shows the manual page")]
) { _, context throws(Failure) in
  context.terminal.write(ManualPage.text(verbTable, version: seameshVersion).utf8)
}

extension Verb {
  /// For machines: what help says, without its layout.
  fileprivate var description: Value {
    .object([
      "verb": .text(name), "summary": .text(sentence), "details": .array(details.map(Value.text)),
      "usage": .array(synopses.map(Value.text)),
      "options": .array(
        allOptions.map { option in
          .object([
            "option": .text("--" + option.name), "value": option.value.placeholder.map(Value.text) ?? .null,
            "repeats": .bool(option.repeats), "summary": .text(option.summary),
          ])
        }),
      "examples": .array(examples.map { .object(["line": .text($0.line), "does": .text($0.does)]) }),
    ])
  }
}
