import Replication
import Wire

/// `seamesh.json` in the data directory: an object whose members are named as the options are, such as
/// `{"listen": "7000", "peer": ["10.0.0.2:7000"], "no-discovery": true}`. The command line goes before it.
struct ConfigurationFile {
  static let fileName = "seamesh.json"
  static let byteLimit = 256 * 1024

  private var options: [String: [String]] = [:]

  /// Empty where there is no file.
  init(directory: String, verbs: [Verb]) throws(Failure) {
    let path = directory + "/" + ConfigurationFile.fileName
    try self.init(readFile(path, limit: ConfigurationFile.byteLimit, ifMissing: "{}"), path: path, verbs: verbs)
  }

  init(_ bytes: [UInt8], path: String, verbs: [Verb]) throws(Failure) {
    let map: ValueMap
    do throws(JSONError) {
      map = try ExtendedJSON.parseMap(bytes)
    } catch {
      throw Failure(.failed, "\(path) cannot be read. \(error.message)")
    }
    let known = (verbs.flatMap(\.options) + globalOptions).filter(\.isConfigurable)
    for entry in map.entries {
      guard let specification = known.first(where: { Text($0.name) == entry.key }) else {
        let hint = nearest(entry.key.string, known.map(\.name)).map { "; did you mean \($0)?" } ?? ""
        throw Failure(.failed, "\(path) sets \(shown(entry.key.string)), which is no option for it\(hint)")
      }
      options[specification.name] = try ConfigurationFile.values(entry.value, specification, path)
    }
  }

  /// What the verb's options are set to. An option of the same name that may not stand in the file is another one: whom
  /// `invite` is for is not this device's own user.
  func options(of verb: Verb) -> [String: [String]] {
    options.filter { option in verb.allOptions.contains { $0.isConfigurable && $0.name == option.key } }
  }

  /// Nil for a flag that is set to false.
  private static func values(
    _ value: Value, _ specification: OptionSpecification, _ path: String
  ) throws(Failure) -> [String]? {
    let items: [Value] = if case .array(let items) = value, specification.repeats { items } else { [value] }
    var values: [String] = []
    for item in items {
      switch (specification.value, item) {
      case (.none, .bool(let flag)): return flag ? [""] : nil
      case (.choice(_, let choices), .string(let text)) where choices.contains(text.string): values.append(text.string)
      case (.text, .string(let text)), (.file, .string(let text)), (.directory, .string(let text)):
        values.append(text.string)
      case (.text, .int(let number)): values.append("\(number)")
      case (.object, .map): values.append(ExtendedJSON.text(item))
      default:
        throw Failure(.failed, "\(path) sets \(specification.name) to something else than \(expected(specification))")
      }
    }
    return values
  }

  private static func expected(_ specification: OptionSpecification) -> String {
    let one =
      switch specification.value {
      case .none: "true or false"
      case .choice(_, let choices): choices.joined(separator: ", ")
      case .text, .file, .directory: "a string"
      case .object: "an object"
      }
    return specification.repeats ? "\(one), or a list of such" : one
  }
}
