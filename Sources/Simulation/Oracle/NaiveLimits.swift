import Replication

/// Why a change that is here does not count, in the words of the rules (C4).
package enum NaiveReason: String, Sendable {
  case undeclared
  case noGrant = "no-grant"
  case aboveLimit = "above-limit"
  case unknownKind = "unknown-kind"
  case documentRule = "document-rule"
  case afterHeld = "after-held"
  case otherBranch = "other-branch"
}

/// What statements say of the changes of one replica in one partition.
package struct NaiveLimits: Sendable {
  /// C13.
  package let bound: NaivePosition
  /// What holds changes above the bound.
  package let reason: NaiveReason
  /// C18: above, a change must write its author's own document and nothing else.
  package let free: UInt64
  package let user: Text?
  /// C18: nothing but the rule for own documents ever allowed the replica to write.
  package let isAuthorBound: Bool
}

extension NaiveLimits {
  /// C7: why a run is not even to be stored, whatever bounds it; nil: it may be. What no right ever allowed is refused,
  /// and what its limits do not reach is kept.
  package func refusal(of run: ObservedRun, floor: UInt64) -> NaiveReason? {
    switch reason {
    case .undeclared: return .undeclared
    case .noGrant: return floor < run.first ? nil : .noGrant
    default: break
    }
    let fits = run.changes.allSatisfy { !$0.isKnown || $0.owner != nil && $0.owner == user }
    return isAuthorBound && !fits ? .documentRule : nil
  }
}

extension NaiveRights {
  /// C13: undeclared: nothing; else the greatest limit of the grants and rules that allow the replica to write.
  package func limits(of replica: ReplicaID, in partition: Text) -> NaiveLimits {
    guard let member = member(of: replica) else {
      return NaiveLimits(bound: .start, reason: .undeclared, free: 0, user: nil, isAuthorBound: false)
    }
    let granted = grants.filter {
      $0.content.level.rawValue >= AccessLevel.write.rawValue && $0.reaches(member.membership)
        && NaivePattern($0.content.pattern).matches(partition)
    }.map { NaiveRights.limit(of: $0, below: .write, among: grants, .changes(partition, replica)) }
    let rule = rule(for: member.membership, in: partition)
    let free = granted + (rule == .write ? [.endless] : [])
    let all = free + (rule == .ownDocument ? [.endless] : [])
    return NaiveLimits(
      bound: .highest(all), reason: all.isEmpty ? .noGrant : .aboveLimit,
      free: NaivePosition.highest(free).sequence, user: member.membership.user,
      isAuthorBound: free.isEmpty && !all.isEmpty)
  }

  // MARK: Rules (C18, C19)

  private enum Ruled { case nothing, read, ownDocument, write }

  private func rule(for membership: Statement.Membership, in partition: Text) -> Ruled {
    guard let name = NaiveRuleName(partition), hasRule(name.key) else { return .nothing }
    switch name.key {
    case "agency":
      guard case .string(let agency)? = membership.profile[name.key] else { return .nothing }
      return agency == name.value ? .write : .nothing
    case "user": return membership.user == name.value ? .write : .nothing
    case "all-users": return membership.user.string.isEmpty ? .read : .ownDocument
    default: return .nothing
    }
  }

  /// Needs a rule statement for the key that counts: by root or an admin.
  private func hasRule(_ key: Text) -> Bool {
    return statements.contains { statement in
      guard case .rule(let content) = statement.body else { return false }
      return content.key == key && admins.contains(statement.issuer)
    }
  }

  // MARK: Levels (C16, C19)

  /// The greatest over registers of the newest grant that reaches the membership, and over rules.
  package func level(of membership: Digest, in partition: Text) -> AccessLevel {
    guard let member = members.first(where: { $0.id == membership }) else { return .none }
    let newest = grants.filter { grant in
      // The newest of a register: highest sequence, then lowest id.
      !grants.contains {
        $0.sharesRegister(grant)
          && ($0.sequence > grant.sequence || $0.sequence == grant.sequence && $0.id < grant.id)
      }
    }
    let granted = newest.filter {
      $0.reaches(member.membership) && NaivePattern($0.content.pattern).matches(partition)
    }.map(\.content.level.rawValue)
    let ruled: AccessLevel =
      switch rule(for: member.membership, in: partition) {
      case .nothing: .none
      case .read, .ownDocument: .read
      case .write: .write
      }
    return AccessLevel(rawValue: (granted + [ruled.rawValue]).max() ?? 0) ?? .none
  }

  /// A device has the highest level of all its memberships.
  package func level(of device: PublicKey, in partition: Text) -> AccessLevel {
    let levels = members.filter { $0.membership.device == device }.map { level(of: $0.id, in: partition).rawValue }
    return AccessLevel(rawValue: levels.max() ?? 0) ?? .none
  }
}

// MARK: The floor (C8)

extension NaiveRights {
  /// The lowest number that any narrowing ever gave for the replica, whether it counts now or not; `UInt64.max`: none did.
  package func floor(of replica: ReplicaID, in partition: Text) -> UInt64 {
    let lowest = declaredEver(replica).flatMap { membership in
      grantsOfAnybody.filter { grant in
        grant.content.level.rawValue >= AccessLevel.write.rawValue && grant.reaches(membership)
          && NaivePattern(grant.content.pattern).matches(partition)
          && (admins.contains(grant.issuer) || wasEverManager(grant.issuer))
      }.flatMap { grant -> [UInt64] in
        // What it rests on, its issuer's right to grant, could have fallen.
        if couldHaveFallen(grant.issuer) { return [0] }
        return lowerings(of: grant, below: .write).map {
          NaiveRights.listed(.changes(partition, replica), by: $0).sequence
        }
      }
    }
    return lowest.min() ?? .max
  }

  /// Memberships that the replica was ever declared under, by the device whose id is in it, counting or not.
  private func declaredEver(_ replica: ReplicaID) -> [Statement.Membership] {
    statements.flatMap { statement -> [Statement.Membership] in
      guard case .replica(let declaration) = statement.body, declaration.replica == replica,
        certificate(declaration, statement.issuer)
      else { return [] }
      return memberships.filter { $0.member.id == declaration.membership }.map(\.member.membership)
    }
  }

  /// All later grants of its register below a level, whoever signed them.
  private func lowerings(of grant: Grant, below level: AccessLevel) -> [Grant] {
    grantsOfAnybody.filter {
      $0.sharesRegister(grant) && grant.precedes($0) && $0.content.level.rawValue < level.rawValue
    }
  }

  /// Did an admin ever give the device, under a membership that somebody entitled signed, a grant to manage?
  private func wasEverManager(_ device: PublicKey) -> Bool {
    return memberships.contains { issuer, member in
      member.membership.device == device && (admins.contains(issuer) || issuer == admissionKey)
        && grantsOfAnybody.contains {
          $0.content.level == .manage && admins.contains($0.issuer) && $0.reaches(member.membership)
        }
    }
  }

  /// Was a grant to manage that reaches the device ever lowered, whoever signed either?
  private func couldHaveFallen(_ device: PublicKey) -> Bool {
    memberships.contains { _, member in
      member.membership.device == device
        && grantsOfAnybody.contains {
          $0.content.level == .manage && $0.reaches(member.membership) && !lowerings(of: $0, below: .manage).isEmpty
        }
    }
  }
}
