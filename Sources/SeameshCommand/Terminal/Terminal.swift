import Glibc
import Replication
import Wire

/// What standard output and standard error are.
struct Terminal: Sendable {
  let isColoured: Bool
  /// Whether progress may be drawn.
  let showsProgress: Bool
  let isOutputTerminal: Bool
  /// Machines read what is written.
  let isJSON: Bool

  init(environment: [String: String], isJSON: Bool) {
    self.isJSON = isJSON
    isOutputTerminal = isatty(STDOUT_FILENO) == 1
    // https://no-color.org: present and not empty.
    let refusesColour = !(environment["NO_COLOR"] ?? "").isEmpty || environment["TERM"] == "dumb"
    isColoured = isOutputTerminal && !refusesColour && !isJSON
    showsProgress = isatty(STDERR_FILENO) == 1 && environment["TERM"] != "dumb" && !isJSON
  }

  enum Style: String {
    case bold = "1"
    case green = "32"
    case yellow = "33"
    case red = "31"
    case faint = "2"
  }

  func styled(_ text: String, _ style: Style) -> String {
    isColoured ? "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m" : text
  }

  /// Writes all of it. Ends the process where that cannot be done: with a word on why, unless nobody reads any more.
  func write(_ bytes: some Collection<UInt8>) {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        if errno != EPIPE { warn("cannot write to standard output: \(String(cString: strerror(errno)))") }
        exit(ExitStatus.failed.rawValue)
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Whether standard output leads to nobody any more: known without writing to it, as while there is nothing to write.
  var isAbandoned: Bool {
    var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
    return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR | POLLHUP) != 0
  }

  /// As ``write(_:)`` ends it.
  func endIfAbandoned() { if isAbandoned { exit(ExitStatus.failed.rawValue) } }

  /// Nil where the output is no terminal; 80 where it does not say.
  var columns: Int? {
    guard isOutputTerminal else { return nil }
    var size = winsize()
    return ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
  }

  /// Whether somebody is there to answer a question.
  var canAsk: Bool { isOutputTerminal && isatty(STDIN_FILENO) == 1 }

  /// Anything but `y` or `yes` is a no.
  func isAnsweredYes(_ question: String) -> Bool {
    write("\(question) [y/N] ".utf8)
    let answer = readLine(strippingNewline: true)?.lowercased() ?? ""
    return answer == "y" || answer == "yes"
  }

  func print(_ line: String) { write((line + "\n").utf8) }

  func warn(_ sentence: String) { complain(sentence, [("warning", .string(Text(sentence)))]) }

  /// Why the command ends without having done what was asked.
  func tell(_ failure: Failure) {
    complain(
      failure.message,
      [("error", .string(Text(failure.message))), ("status", .int(Int64(failure.status.rawValue)))])
  }

  /// On standard error: a sentence, or an object for machines.
  func complain(_ sentence: String, _ members: [(Text, Value)]) {
    complain(isJSON ? ExtendedJSON.object(members) + "\n" : "seamesh: \(sentence)\n")
  }

  private func complain(_ line: String) {
    let bytes = Array(line.utf8)
    _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }
}

/// Text of others (labels, ids, mistyped words) without the control characters with which it could drive a terminal.
func shown(_ text: String) -> String {
  String(
    String.UnicodeScalarView(
      text.unicodeScalars.map { scalar in
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: Unicode.Scalar(UInt8(ascii: "?"))
        default: scalar
        }
      }))
}
