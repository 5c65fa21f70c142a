import Replication

/// Why no invitation was made or cancelled. `description` is one sentence for a person.
package enum InvitationError: Error, Hashable, Sendable {
  case notAnAdmin
  case rootKeyMissing
  case tooMany
  case tooLong
  /// No open invitation has this number.
  case notOpen(UInt64)
  /// Somebody has entered with it.
  case used(UInt64)
}

extension InvitationError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notAnAdmin: "this device is no admin: invite on one that is, or where the fleet's root key lies"
    case .rootKeyMissing:
      "admins are invited only where the fleet's root key lies: put fleet-root.key into this node's directory, or choose "
        + "another role"
    case .tooMany:
      "\(InvitationBook.openLimit) invitations are open, which is the most there may be: cancel some with seamesh invites "
        + "--cancel N"
    case .tooLong: "an invitation is valid for 1 second to 366 days"
    case .notOpen(let serial): "no invitation \(serial) is open: seamesh invites shows those that are"
    case .used(let serial):
      "invitation \(serial) was used already: seamesh devices shows who entered, and seamesh revoke ends a device"
    }
  }
}

extension NodeEngine {
  /// Makes an invitation, which is on disk when this returns.
  package func invite(_ draft: InvitationDraft) throws -> Invitation {
    let now = state.clock.wallMilliseconds
    do throws(JoinDesk.JoinProblem) {
      _ = try JoinDesk(state: state).signer(for: draft.role)
    } catch {
      throw error == .notAnAdmin ? InvitationError.notAnAdmin : .rootKeyMissing
    }
    guard draft.validMilliseconds >= 1_000, draft.validMilliseconds <= InvitationDraft.longestMilliseconds else {
      throw InvitationError.tooLong
    }
    guard openInvitations.count < InvitationBook.openLimit else { throw InvitationError.tooMany }
    let (expires, isTooLate) = now.addingReportingOverflow(draft.validMilliseconds)
    guard let secret = state.drawInvitationSecret(), !isTooLate else { throw InvitationError.tooLong }
    let invitation = Invitation(
      serial: state.nextInvitationSerial, secret: secret, user: draft.user, role: draft.role, profile: draft.profile,
      expires: expires)
    try keep(invitation, forgetting: state.invitations.forgotten(at: now))
    return invitation
  }

  package func cancelInvitation(_ serial: UInt64) throws {
    guard !state.isUsed(serial) else { throw InvitationError.used(serial) }
    guard var invitation = state.invitations[serial], invitation.isOpen(at: state.clock.wallMilliseconds) else {
      throw InvitationError.notOpen(serial)
    }
    invitation.state = .cancelled
    try keep(invitation, forgetting: [])
  }

  package var openInvitations: [Invitation] {
    state.invitations.open(at: state.clock.wallMilliseconds).filter { !state.isUsed($0.serial) }
  }

  private func keep(_ invitation: Invitation, forgetting forgotten: [UInt64]) throws {
    try store { transaction in
      try transaction.put(invitation)
      for serial in forgotten { try transaction.removeInvitation(serial) }
    }
    state.invitations.put(invitation)
    for serial in forgotten { state.invitations.remove(serial) }
  }
}

extension EngineState {
  /// By what is kept here, or by what the statements show: the store may be a copy put back from before the use.
  fileprivate func isUsed(_ serial: UInt64) -> Bool {
    if case .used? = invitations[serial]?.state { return true }
    return !mesh.authority.devices(enteredBy: InvitationID(inviter: identity.device, serial: serial)).isEmpty
  }

  /// Above all that were given here, and all that are known to have been used: the store may be a copy put back.
  fileprivate var nextInvitationSerial: UInt64 {
    max(invitations.lastSerial, mesh.authority.lastEnteredSerial(of: identity.device)) + 1
  }

  fileprivate func drawInvitationSecret() -> InvitationSecret? {
    var bytes: [UInt8] = []
    while bytes.count < InvitationSecret.byteCount {
      let word = random.next() as UInt64
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
    return InvitationSecret(bytes)
  }
}
