extension Statement.Body {
  /// Nil: of a later version.
  private var knownKind: Statement.Kind? {
    switch self {
    case .genesis: .genesis
    case .membership: .membership
    case .replica: .replica
    case .grant: .grant
    case .rule: .rule
    case .end: .end
    case .raise: .raise
    case .baseline: .baseline
    case .invitation: .invitation
    case .room: .room
    case .removal: .removal
    case .leave: .leave
    case .unknown: nil
    }
  }

  package var kind: UInt16 {
    if case .unknown(let unknown) = self { unknown.kind } else { knownKind?.rawValue ?? 0 }
  }
}
