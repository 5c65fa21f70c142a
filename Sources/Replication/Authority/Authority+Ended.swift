// Devices that are members no longer: what they may still hear, and what of theirs is still taken.
extension Authority {
  /// It was a member, and no membership of it stands.
  package func isEnded(_ device: PublicKey) -> Bool {
    !members(of: device).isEmpty && standingMemberships(of: device).isEmpty
  }

  /// The end of a membership that root gave an admin. Which of its statements count, only root's raises widen; any admin's
  /// widen how far its chains do (rule C15).
  package func endsAdmin(_ id: Digest) -> Bool {
    guard case .end(let end)? = self[id]?.body, case .membership(let membership) = end.target else { return false }
    return members.isEverAdminMembership(membership)
  }

  /// A narrowing that ends a membership. Raised, it lets count again what the device granted and whom it let in.
  package func endsMembership(_ id: Digest) -> Bool {
    if case .end(let end)? = self[id]?.body, case .membership = end.target { true } else { false }
  }

  /// Whether the device ever gave rights, took them, or let somebody in.
  package func hasDecided(_ device: PublicKey) -> Bool {
    allStatements.contains { statement in
      guard statement.issuer == device else { return false }
      return switch statement.body {
      case .replica, .leave, .unknown: false
      default: true
      }
    }
  }

  /// Somebody else may have its key.
  func isCompromised(_ device: PublicKey) -> Bool { compromised.contains(device) }

  /// Changes above the chain's limit are kept and passed on, for an admin to let them count: something allowed the author
  /// to write here once, and nobody says that its key is in other hands.
  func isHeldForRaise(_ replica: ReplicaID, _ reason: HoldReason) -> Bool {
    guard reason == .aboveEnd || reason == .aboveLimit, let author = author(of: replica) else { return false }
    return !isCompromised(author)
  }

  /// All that is said of what ended the device or was given back to it, with what those statements stand on: without that
  /// they would not come into its set.
  func statements(about device: PublicKey) -> Set<Digest> {
    let own = Set(members(of: device).map(\.id))
    var ends: Set<Digest> = []
    for statement in fleetStatements {
      if case .end(let end) = statement.body, case .membership(let id) = end.target, own.contains(id) {
        ends.insert(statement.id)
      }
    }
    let raises = fleetStatements.filter {
      if case .raise(let raise) = $0.body { ends.contains(raise.end) } else { false }
    }
    return closure(of: own.union(ends).union(raises.map(\.id)))
  }

  private func closure(of ids: Set<Digest>) -> Set<Digest> {
    var (closure, waiting): (Set<Digest>, [Digest]) = ([], Array(ids))
    while let id = waiting.popLast() {
      guard let statement = self[id], statement.isOfFleet, closure.insert(id).inserted else { continue }
      if let previous = statement.previous { waiting.append(previous) }
      waiting += statement.tips.lazy.filter { $0.scope.utf8.isEmpty }.flatMap(\.tips).map(\.id)
      waiting += members(of: statement.issuer).map(\.id)
    }
    return closure
  }

  static func compromised(_ index: StatementIndex, _ members: MemberTable, _ rights: RightsTable) -> Set<PublicKey> {
    Set(
      index.ends.compactMap { end in
        guard end.content.reason == .compromised, case .membership(let id) = end.content.target,
          rights.narrowings(of: end.content.target).contains(where: { $0.id == end.id })
        else { return nil }
        return members.device(of: id)
      })
  }
}
