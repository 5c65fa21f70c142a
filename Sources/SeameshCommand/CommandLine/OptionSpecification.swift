/// An option `--name`, `--name=VALUE` or `--name VALUE`.
struct OptionSpecification: Sendable, Equatable {
  enum Value: Sendable, Equatable {
    case none
    case text(String)
    case file(String)
    case directory(String)
    case choice(String, [String])
    /// A JSON object, as text on the command line and as it is in the configuration file.
    case object

    /// How help names the value.
    var placeholder: String? {
      switch self {
      case .none: nil
      case .text(let name), .file(let name), .directory(let name), .choice(let name, _): name
      case .object: "JSON"
      }
    }
  }

  let name: String
  let value: Value
  let summary: String
  let repeats: Bool
  /// May stand in the configuration file.
  let isConfigurable: Bool

  init(_ name: String, _ value: Value = .none, _ summary: String, repeats: Bool = false, configurable: Bool = false) {
    (self.name, self.value, self.summary) = (name, value, summary)
    (self.repeats, isConfigurable) = (repeats, configurable)
  }

  /// `--name=VALUE`.
  var synopsis: String { "--" + name + (value.placeholder.map { "=" + $0 } ?? "") }
}

/// An argument that is not an option.
struct Operand: Sendable, Equatable {
  enum Presence: Sendable, Equatable { case required, optional, oneOrMore, zeroOrMore }
  enum Kind: Sendable, Equatable {
    case text
    case file
    case choice([String])
    /// The name of one, not a beginning of names.
    case partition
    case collection
  }

  let name: String
  let presence: Presence
  let kind: Kind

  init(_ name: String, _ presence: Presence = .required, kind: Kind = .text) {
    (self.name, self.presence, self.kind) = (name, presence, kind)
  }

  var synopsis: String {
    switch presence {
    case .required: name
    case .optional: "[\(name)]"
    case .oneOrMore: "\(name)..."
    case .zeroOrMore: "[\(name)...]"
    }
  }
}
