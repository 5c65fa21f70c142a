import Glibc
import Identity

let seameshVersion = "0.1.0"

/// The command `seamesh`.
@main
struct SeameshCommand {
  static func main() {
    HeapReserve.keep()
    OpenSSL.prepare()
    let terminal = Terminal(environment: environment(), isJSON: CommandLine.arguments.contains("--json"))
    do throws(Failure) {
      try requireUTF8()
      try run(Array(CommandLine.arguments.dropFirst()), terminal)
    } catch {
      terminal.tell(error)
      exit(error.status.rawValue)
    }
  }

  /// Bytes that are no text would arrive mended, and so name something else.
  private static func requireUTF8() throws(Failure) {
    for index in 0..<Int(CommandLine.argc) {
      guard let argument = CommandLine.unsafeArgv[index], String(validatingCString: argument) == nil else { continue }
      throw .usage("argument \(index) is not UTF-8 text")
    }
  }

  private static func run(_ arguments: [String], _ terminal: Terminal) throws(Failure) {
    switch try Parser(verbs: verbTable).parse(arguments) {
    case .help(let name): try showHelp(name, terminal)
    case .version: showVersion(terminal)
    case .run(var invocation):
      let verb = try Parser(verbs: verbTable).verb(invocation.verb)
      let directory = try dataDirectory(invocation, environment: environment())
      invocation.fill(from: try ConfigurationFile(directory: directory, verbs: verbTable).options(of: verb))
      let usual = try? dataDirectory(Invocation(verb: invocation.verb), environment: environment())
      try verb.run(
        invocation,
        Context(
          directory: directory, terminal: terminal, isJSON: invocation.has("json"),
          isDefaultDirectory: directory == usual))
    }
  }
}

/// The process's environment variables.
func environment() -> [String: String] {
  var variables: [String: String] = [:]
  var entry = environ
  while let line = entry.pointee {
    let sides = String(cString: line).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    if sides.count == 2 { variables[String(sides[0])] = String(sides[1]) }
    entry += 1
  }
  return variables
}
