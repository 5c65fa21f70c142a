import Replication

/// How a change of rights is asked for.
public enum RightsMode: Sendable {
  /// Says what it would do, and signs nothing.
  case preview
  /// Signs it where it takes nothing away from anybody. Otherwise it throws ``NodeError/Code/unprocessable``, and nothing is
  /// signed.
  case sign
  /// Signs it whatever it takes away: for an app that has shown somebody the ``preview``, or knows what it does.
  case signConfirmed
}

extension Node {
  /// Whether this device may do so much in a partition now.
  public func can(_ access: PartitionAccess, in partition: String) async throws(NodeError) -> Bool {
    let name = try self.partition(named: partition)
    return try await Blocking.run { () throws(NodeError) in try self.may(access.level, in: name) }
  }

  /// Gives the subject this access in a partition, or with a `*` at the end in all whose names begin so: no more and no
  /// less, whatever was granted to the same subject on the same pattern before. Where that was more, it takes something away.
  @discardableResult
  public func grant(
    _ access: PartitionAccess, to subject: RightsSubject, in pattern: String, _ mode: RightsMode = .sign
  ) async throws(NodeError) -> RightsEffect {
    try await change(.grant(who: subject.text, level: access.rawValue, pattern: Text(pattern)), mode)
  }

  /// Ends a device, which always takes something away. What it wrote counts as far as it is here; the rest is held until it
  /// is raised.
  ///
  /// - Parameters:
  ///   - isCompromised: nothing of it counts in partitions that this node does not carry.
  ///   - moment: only what had arrived here by then counts, as ISO 8601, such as `2026-05-31T12:00:00Z`.
  @discardableResult
  public func revoke(
    _ device: String, isCompromised: Bool = false, at moment: String? = nil, _ mode: RightsMode
  ) async throws(NodeError) -> RightsEffect {
    try await change(.revoke(device: device, isCompromised: isCompromised, at: moment), mode)
  }

  /// Ends a device that has done its work, which always takes something away: what it wrote goes on counting.
  @discardableResult
  public func retire(_ device: String, _ mode: RightsMode) async throws(NodeError) -> RightsEffect {
    try await change(.retire(device: device), mode)
  }

  /// Lets count again what ends of a device hold back here, or what the one statement does whose id begins so.
  @discardableResult
  public func raise(_ what: String, _ mode: RightsMode = .sign) async throws(NodeError) -> RightsEffect {
    try await change(.raise(what), mode)
  }

  private func change(_ action: RightsChange.Action, _ mode: RightsMode) async throws(NodeError) -> RightsEffect {
    let change =
      switch mode {
      case .preview: RightsChange(action, isDryRun: true)
      case .sign: RightsChange(action)
      case .signConfirmed: RightsChange(action, isConfirmed: true)
      }
    return try await Blocking.run { () throws(NodeError) in RightsEffect(try self.change(change)) }
  }
}
