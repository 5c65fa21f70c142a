/// What a schema says of paths, for turning local writes into operations. It never changes what a write means.
package struct WriteHints: Sendable {
  package enum Kind: Sendable, Hashable {
    /// Elements with an identity of their own. `key`: the field that tells one map among them from another.
    case list(key: Text?)
    case set
    case counter
    /// One value as a whole: how arrays are taken without a hint, too, unless they are shown as a list or set.
    case register
  }

  /// One step of a path pattern.
  package enum Step: Sendable, Hashable {
    case key(Text)
    case anyElement
  }

  /// The hint for this very path.
  package private(set) var kind: Kind?
  private var below: [Step: WriteHints] = [:]

  package static let none = WriteHints([])

  /// The last of several hints for one path counts.
  package init(_ hints: [(path: [Step], kind: Kind)]) {
    for hint in hints { insert(hint.kind, at: hint.path[...]) }
  }

  private mutating func insert(_ kind: Kind, at path: ArraySlice<Step>) {
    guard let step = path.first else {
      self.kind = kind
      return
    }
    below[step, default: .none].insert(kind, at: path.dropFirst())
  }

  package func below(_ step: Step) -> WriteHints { below[step] ?? .none }
}
