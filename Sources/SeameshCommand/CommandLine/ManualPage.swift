/// The manual page seamesh(1) in roff (man-pages(7)), made from the table of verbs.
enum ManualPage {
  static func text(_ verbs: [Verb], version: String) -> String {
    var page = """
      .TH SEAMESH 1 "" "seamesh \(escaped(version))" "User Commands"
      .SH NAME
      seamesh \\- documents in step between devices, over whatever network there is
      .SH SYNOPSIS
      .B seamesh
      .I VERB
      .RI [ OPTION ]...
      .RI [ ARGUMENT ]...
      .SH VERBS

      """
    for verb in verbs { page += section(verb) }
    page += ".SH OPTIONS\nEvery verb takes these:\n" + options(globalOptions)
    page += ".SH EXIT STATUS\n"
    for status in ExitStatus.allCases { page += ".TP\n\(status.rawValue)\n\(escaped(status.meaning))\n" }
    page += """
      .SH ENVIRONMENT
      .TP
      SEAMESH_DATA
      the data directory, where
      .B \\-\\-data
      is not given
      .TP
      NO_COLOR
      when set, nothing is coloured
      .SH FILES
      .TP
      .I DIR/seamesh.json
      options by their names, for what the command line leaves open
      .TP
      .I DIR/api.sock
      the socket on which a running node answers
      .TP
      .I DIR/api.token
      what admits a request over TCP

      """
    return page
  }

  private static func section(_ verb: Verb) -> String {
    var text =
      ".SS \(escaped(verb.name))\n" + verb.synopses.map { ".B \(escaped($0))\n.br\n" }.joined()
      + "\(escaped(verb.sentence))\n"
    for paragraph in verb.details { text += ".PP\n\(escaped(paragraph))\n" }
    text += options(verb.options)
    for example in verb.examples {
      text += ".PP\n\(escaped(example.does)):\n.RS\n.nf\n\(escaped(example.line))\n.fi\n.RE\n"
    }
    return text
  }

  private static func options(_ options: [OptionSpecification]) -> String {
    options.map { ".TP\n.B \(escaped($0.synopsis))\n\(escaped($0.summary))\n" }.joined()
  }

  /// A dash would become a hyphen, and a dot or apostrophe at the start of a line a request.
  private static func escaped(_ text: String) -> String {
    let text = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
    return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text
  }
}
