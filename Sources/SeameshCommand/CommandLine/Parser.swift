import Replication
import Seamesh

/// Reads a command line by GNU's conventions: options anywhere, `--name=value` or `--name value`, `--` ends options,
/// `-` is an operand.
struct Parser {
  let verbs: [Verb]

  enum Outcome: Equatable {
    case run(Invocation)
    /// Help on one verb, or on all.
    case help(String?)
    case version
  }

  func parse(_ arguments: [String]) throws(Failure) -> Outcome {
    var rest = arguments[...]
    var verb: Verb?
    var (operands, options): ([String], [String: [String]]) = ([], [:])
    var optionsEnded = false
    while let argument = rest.popFirst() {
      if !optionsEnded, argument == "--" {
        optionsEnded = true
      } else if !optionsEnded, argument.hasPrefix("-"), argument != "-" {
        let (name, value) = try option(argument, &rest, verb)
        options[name, default: []].append(value)
      } else if verb == nil {
        verb = try self.verb(argument)
      } else {
        operands.append(argument)
      }
    }
    if options["help"] != nil { return .help(verb?.name) }
    if options["version"] != nil { return .version }
    guard let verb else { throw .usage("no verb was given; seamesh help lists them") }
    try check(options, verb)
    try check(operands, verb)
    return .run(Invocation(verb: verb.name, operands: operands, options: options))
  }

  func verb(_ name: String) throws(Failure) -> Verb {
    if let verb = verbs.first(where: { $0.name == name }) { return verb }
    let hint = nearest(name, verbs.map(\.name)).map { "did you mean \($0)?" } ?? "seamesh help lists the verbs"
    throw .usage("there is no verb \(shown(name)); \(hint)")
  }

  private func option(
    _ argument: String, _ rest: inout ArraySlice<String>, _ verb: Verb?
  ) throws(Failure) -> (name: String, value: String) {
    if argument == "-h" { return ("help", "") }
    guard argument.hasPrefix("--") else {
      throw .usage("there is no option \(shown(argument)); options begin with two dashes, and -- ends them")
    }
    let sides = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(sides.first ?? "")
    let known = verb?.allOptions ?? globalOptions
    guard let specification = known.first(where: { $0.name == name }) else { throw unknown(name, known, verb) }
    let value: String
    switch (specification.value, sides.count == 2 ? String(sides[1]) : nil) {
    case (.none, nil): value = ""
    case (.none, .some): throw .usage("--\(name) takes no value")
    case (_, let given?): value = given
    case (_, nil):
      guard let next = rest.popFirst() else {
        throw .usage("--\(name) needs a value: \(specification.synopsis)")
      }
      value = next
    }
    if case .choice(_, let choices) = specification.value, !choices.contains(value) {
      throw .usage("--\(name) takes \(choices.joined(separator: ", ")), not \(shown(value))")
    }
    return (name, value)
  }

  private func unknown(_ name: String, _ known: [OptionSpecification], _ verb: Verb?) -> Failure {
    let place = verb.map { "seamesh \($0.name)" } ?? "seamesh, before a verb,"
    let hint =
      nearest(name, known.map(\.name)).map { "did you mean --\($0)?" }
      ?? "\(verb.map { "seamesh \($0.name) --help" } ?? "seamesh help") shows what there is"
    return .usage("\(place) has no option --\(shown(name)); \(hint)")
  }

  private func check(_ options: [String: [String]], _ verb: Verb) throws(Failure) {
    for specification in verb.allOptions where !specification.repeats {
      if let values = options[specification.name], values.count > 1, specification.value != .none {
        throw .usage("--\(specification.name) was given \(values.count) times; once is enough")
      }
    }
  }

  private func check(_ operands: [String], _ verb: Verb) throws(Failure) {
    let least = verb.operands.count { $0.presence == .required || $0.presence == .oneOrMore }
    let isOpen = verb.operands.contains { $0.presence == .oneOrMore || $0.presence == .zeroOrMore }
    guard operands.count >= least else {
      throw .usage(
        "\(verb.operands[operands.count].name) is missing; the usage is: \(verb.synopses.joined(separator: ", or "))")
    }
    guard isOpen || operands.count <= verb.operands.count else {
      throw .usage(
        "\(shown(operands[verb.operands.count])) is one argument too many; the usage is: \(verb.synopses.joined(separator: ", or "))"
      )
    }
    for (operand, value) in zip(verb.operands, operands) {
      guard !value.isEmpty else { throw .usage("\(operand.name) is empty") }
      try operand.kind.check(value, operand.name)
    }
  }
}

extension Operand.Kind {
  /// What is wrong with a value by itself, whatever a node holds.
  func check(_ value: String, _ name: String) throws(Failure) {
    switch self {
    case .text, .file: break
    case .choice(let choices):
      guard !choices.contains(value) else { return }
      throw .usage("\(name) is \(choices.joined(separator: ", ")), not \(shown(value))")
    case .partition: try wellFormed { () throws(NodeError) in try PartitionName.ofDocuments(value) }
    case .collection: try wellFormed { () throws(NodeError) in try DocumentLimits.check(collection: Text(value)) }
    }
  }
}
