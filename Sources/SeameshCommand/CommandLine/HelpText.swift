/// Help as plain text, made from the table of verbs.
enum HelpText {
  static let width = 80

  static func overview(_ verbs: [Verb]) -> String {
    """
    Usage: seamesh VERB [OPTION]... [ARGUMENT]...

    Seamesh keeps documents in step between the devices of a fleet, over whatever
    network there is.

    Verbs:
    \(columns(verbs.map { ($0.name, $0.summary) }, left: 18))

    Options of every verb:
    \(optionColumns(globalOptions))

    seamesh VERB --help shows the options of a verb and an example.
    Exit status: \(ExitStatus.allCases.map { "\($0.rawValue) \($0.meaning)" }.joined(separator: ",\n  ")).

    """
  }

  static func verb(_ verb: Verb) -> String {
    var text = "Usage: \(verb.synopses.joined(separator: "\n       "))\n\n\(wrapped(verb.sentence, indent: 0))\n"
    for paragraph in verb.details { text += "\n\(wrapped(paragraph, indent: 0))\n" }
    if !verb.options.isEmpty { text += "\nOptions:\n\(optionColumns(verb.options))\n" }
    text += "\nOptions of every verb:\n\(optionColumns(globalOptions))\n"
    text += verb.examples.count == 1 ? "\nExample:\n" : "\nExamples:\n"
    for example in verb.examples { text += "  \(example.line)\n\(wrapped(example.does + ".", indent: 6))\n" }
    return text
  }

  private static func optionColumns(_ options: [OptionSpecification]) -> String {
    columns(
      options.map { option in
        var meaning = option.summary
        if case .choice(_, let choices) = option.value { meaning += ": \(choices.joined(separator: ", "))" }
        return (option.synopsis, meaning + (option.repeats ? " (may be repeated)" : ""))
      })
  }

  /// Names on the left, meanings wrapped beside them, or below where the name is long.
  private static func columns(_ rows: [(name: String, meaning: String)], left: Int = 24) -> String {
    return rows.map { name, meaning in
      let lines = wrapped(meaning, indent: left)
      return name.count + 4 <= left
        ? "  \(name)" + lines.dropFirst(name.count + 2)
        : "  \(name)\n\(lines)"
    }.joined(separator: "\n")
  }

  static func wrapped(_ text: String, indent: Int) -> String {
    let margin = String(repeating: " ", count: indent)
    var (lines, line): ([String], String) = ([], margin)
    for word in text.split(separator: " ") {
      if line.count + word.count >= width, line.count > indent {
        lines.append(line)
        line = margin
      }
      line += (line.count > indent ? " " : "") + word
    }
    return (lines + [line]).joined(separator: "\n")
  }
}
