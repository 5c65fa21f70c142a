import Glibc
import Seamesh

/// A command line that was understood.
struct Invocation: Sendable, Equatable {
  let verb: String
  let operands: [String]
  /// In the order in which they were given.
  private(set) var options: [String: [String]]

  init(verb: String, operands: [String] = [], options: [String: [String]] = [:]) {
    (self.verb, self.operands, self.options) = (verb, operands, options)
  }

  func has(_ name: String) -> Bool { options[name] != nil }
  func all(_ name: String) -> [String] { options[name] ?? [] }
  /// The last one given.
  subscript(name: String) -> String? { options[name]?.last }

  func operand(_ index: Int) -> String? { operands.indices.contains(index) ? operands[index] : nil }

  /// An operand that the parser has checked to be there.
  func required(_ index: Int) -> String { operand(index) ?? "" }

  func count(_ name: String) throws(Failure) -> Int? {
    guard let text = self[name] else { return nil }
    guard let number = Int(text), number >= 0 else { throw .usage("--\(name) takes a whole number, not \(text)") }
    return number
  }

  /// Adds what the command line left open.
  mutating func fill(from defaults: [String: [String]]) {
    options.merge(defaults) { given, _ in given }
  }
}

/// Where a verb runs.
struct Context: Sendable {
  let directory: String
  let terminal: Terminal
  let isJSON: Bool
  /// The directory is the one that a command without `--data` takes.
  var isDefaultDirectory = true

  var client: NodeClient {
    get throws(Failure) { try NodeClient(directory: directory, isDefaultDirectory: isDefaultDirectory) }
  }

  /// What to type for another verb on the same directory.
  func command(_ line: String) -> String { commandLine(line, directory: directory, isDefault: isDefaultDirectory) }
}

/// `line` with the option that names the directory, where one without it would take another.
func commandLine(_ line: String, directory: String, isDefault: Bool) -> String {
  "seamesh \(line)" + (isDefault ? "" : " --data=\(shown(directory).shellQuoted)")
}

/// Absolute path of the data directory, which need not exist.
func dataDirectory(_ invocation: Invocation, environment: [String: String]) throws(Failure) -> String {
  func named(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
  if let given = invocation["data"] {
    guard !given.isEmpty else { throw .usage("--data takes a directory") }
    return absolutePath(given)
  }
  if let given = named("SEAMESH_DATA") { return absolutePath(given) }
  // A relative XDG_DATA_HOME is to be ignored (XDG Base Directory Specification).
  if let base = named("XDG_DATA_HOME"), base.hasPrefix("/") { return base + "/seamesh" }
  guard let home = named("HOME") else { throw .usage("no home directory is known; name a directory with --data DIR") }
  return absolutePath(home) + "/.local/share/seamesh"
}

func absolutePath(_ path: String) -> String {
  if path.hasPrefix("/") { return path }
  guard let buffer = getcwd(nil, 0) else { return path }
  defer { free(buffer) }
  return String(cString: buffer) + "/" + path
}
