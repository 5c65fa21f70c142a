import Replication

/// Why a change that is here does not count, in the words of the rules (C4).
package enum NaiveReason: String, Sendable {
  case undeclared
  case noGrant = "no-grant"
  case aboveLimit = "above-limit"
  case aboveEnd = "above-end"
  case unknownKind = "unknown-kind"
  case documentRule = "document-rule"
  case afterHeld = "after-held"
  case otherBranch = "other-branch"
  case gap
}

/// Why a run is not taken as it is, by statements alone (C7).
package enum NaiveRefusal: String, Sendable {
  case undeclared
  /// Declared, but nobody's word on it counts.
  case void
  case noGrant = "no-grant"
  case documentRule = "document-rule"

  /// A right is missing: the run is held in doubt (C27), else set aside; never the connection's fault.
  package var isLackOfRight: Bool { self == .noGrant || self == .documentRule }
}

/// What statements say of the changes of one replica in one partition.
package struct NaiveLimits: Sendable {
  /// C13: to which all is clipped.
  package let bound: NaivePosition
  /// What holds changes above the bound.
  package let reason: NaiveReason
  /// C13: counts whatever narrows.
  package let baseline: NaivePosition
  /// C27: the highest limit of what allows the replica to write, as far as this version reads it.
  package let known: NaivePosition
  /// What holds changes above the known limit.
  package let lack: NaiveReason
  /// C18: above, a change must write its author's own document and nothing else.
  package let free: NaivePosition
  /// C18: what rules let a user write of his own document, and up to where.
  package let own: [Own]
  /// C6: on whose branch changes count.
  package let branch: NaivePosition
  /// C7: nothing but rules for own documents ever allowed the replica to write.
  package let isAuthorBound: Bool
  package let isVoid: Bool
  package let user: Text?

  package struct Own: Sendable {
    /// Beside those of every such rule.
    package let fields: Set<Text>
    package let limit: NaivePosition
  }

  /// C4: what holds a change on the chosen branch; nil: nothing.
  func reason(against change: ObservedChange?, at sequence: UInt64) -> NaiveReason? {
    if sequence > bound.sequence { return reason }
    guard let change else { return nil }
    if !change.isKnown { return .unknownKind }
    if sequence <= baseline.sequence { return nil }
    if sequence > known.sequence { return lack }
    let isFree = sequence <= free.sequence
    let fits = own.contains { sequence <= $0.limit.sequence && change.isOwn(of: user, beside: $0.fields) }
    return isFree || fits ? nil : .documentRule
  }

  /// C7: why a run is not taken as it is; nil: it may be. Limits are not asked.
  package func refusal(of run: ObservedRun) -> NaiveRefusal? {
    if reason == .undeclared { return isVoid ? .void : .undeclared }
    if lack == .noGrant { return .noGrant }
    let fits = run.changes.allSatisfy { change in own.contains { change.isOwn(of: user, beside: $0.fields) } }
    return isAuthorBound && !fits ? .documentRule : nil
  }
}

extension NaiveRights {
  /// Every grant, rule or invitation ever issued that lets somebody write.
  private struct Source {
    /// C18: only his own document, with these fields beside the usual; nil: everything.
    var fields: Set<Text>?
    let limit: NaivePosition
  }

  /// C13–C18, C27.
  package func limits(of replica: ReplicaID, in partition: Text) -> NaiveLimits {
    let baseline = NaivePosition.highest(
      baselines.filter { $0.content.partition == partition }.flatMap(\.content.entries)
        .filter { $0.replica == replica }.map { NaivePosition(sequence: $0.position.sequence, tip: $0.position.tip) })
    guard let member = rank.replicas[replica] else {
      return NaiveLimits(
        bound: baseline, reason: .undeclared, baseline: baseline, known: baseline, lack: .undeclared, free: baseline,
        own: [], branch: baseline, isAuthorBound: false, isVoid: isDeclared(replica), user: nil)
    }
    let sources = sources(for: member, replica, partition)
    let end = NaivePosition.lowest(
      (ends(on: .membership(member.id)) + ends(on: .replica(replica))).map {
        word(of: $0, on: replica, in: partition)
      })
    let known = NaivePosition.highest(sources.map(\.limit))
    func atLeastBaseline(_ position: NaivePosition) -> NaivePosition {
      baseline.sequence >= position.sequence ? baseline : position
    }
    let branch = atLeastBaseline(.lowest([end, known]))
    let lack: NaiveReason = sources.isEmpty ? .noGrant : .aboveLimit
    return NaiveLimits(
      // More may be allowed than this version can read: that clips nothing.
      bound: isInDoubt ? atLeastBaseline(end) : branch,
      reason: !sources.isEmpty && end.sequence <= known.sequence ? .aboveEnd : lack, baseline: baseline, known: known,
      lack: lack, free: .highest(sources.filter { $0.fields == nil }.map(\.limit)),
      own: sources.compactMap { source in source.fields.map { NaiveLimits.Own(fields: $0, limit: source.limit) } },
      branch: branch, isAuthorBound: !sources.isEmpty && sources.allSatisfy { $0.fields != nil }, isVoid: false,
      user: member.user)
  }

  private func sources(for member: NaiveMember, _ replica: ReplicaID, _ partition: Text) -> [Source] {
    // C27: a membership of unknown shape has no right here.
    guard member.content != nil else { return [] }
    func limit(_ closers: [Statement]) -> NaivePosition {
      .lowest(closers.map { word(of: $0, on: replica, in: partition) })
    }
    let granted = grants.filter {
      $0.content.level.rawValue >= AccessLevel.write.rawValue && $0.reaches(member) && $0.matches(partition)
    }.map { Source(limit: limit(closers(of: $0, below: .write))) }
    guard let name = NaiveRuleName(partition) else { return granted }
    let rules = rules.filter { $0.content.key == name.key }
    let ruled = rules.compactMap { rule -> Source? in
      let limit = limit(ends(on: .grant(rule.id)))
      switch name.key {
      case "agency": return member.isOf(agency: name.value) ? Source(limit: limit) : nil
      case "user": return member.user == name.value ? Source(limit: limit) : nil
      case "all-users": return member.namedUser.map { _ in Source(fields: rule.content.fields, limit: limit) }
      default: return nil
      }
    }
    let isRoom = name.key == "conversation" && !rules.isEmpty
    let invited = isRoom ? rooms[partition]?.limits(of: member, replica) ?? [] : []
    return granted + ruled + invited.map { Source(limit: $0) }
  }
}
