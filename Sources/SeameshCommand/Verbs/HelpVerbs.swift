let helpVerb = Verb(
  "help", "show help on all verbs, or on one", operands: [Operand("VERB", .optional)],
  examples: [.init("seamesh help import", "Shows the options of import with an example")]
) { invocation, context throws(Failure) in
  try showHelp(invocation.operand(0), context.terminal)
}

func showHelp(_ name: String?, _ terminal: Terminal) throws(Failure) {
  let text =
    if let name { HelpText.verb(try Parser(verbs: verbTable).verb(name)) } else { HelpText.overview(verbTable) }
  terminal.write(text.utf8)
}

let versionVerb = Verb(
  "version", "show the version", examples: [.init("seamesh version", "Shows which build this is")]
) { _, context throws(Failure) in
  showVersion(context.terminal, isJSON: context.isJSON)
}

func showVersion(_ terminal: Terminal, isJSON: Bool) {
  terminal.print(isJSON ? "{\"version\":\"\(seameshVersion)\"}" : "seamesh \(seameshVersion)")
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
