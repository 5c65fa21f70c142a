extension InvitationID {
  /// As a membership notes it: eight bytes of the serial number, big-endian, and the inviting device's key where another
  /// signed, as root does for admins.
  package func note(signedBy issuer: PublicKey) -> [UInt8] {
    var out: [UInt8] = []
    appendBigEndian(serial, to: &out)
    if issuer != inviter { inviter.raw.append(to: &out) }
    return out
  }

  fileprivate init?(note: [UInt8], issuer: PublicKey) {
    guard note.count >= 8 else { return nil }
    var iterator = note.makeIterator()
    let serial = bigEndianWord(&iterator)
    if note.count == 8 {
      self.init(inviter: issuer, serial: serial)
    } else if let inviter = PublicKey(note.dropFirst(8)) {
      self.init(inviter: inviter, serial: serial)
    } else {
      return nil
    }
  }
}

extension Statement {
  /// The invitation that a membership says it answers.
  package var answeredInvitation: InvitationID? {
    guard case .membership = body, let note = notes[StatementNotes.Key.invitationSerial] else { return nil }
    return InvitationID(note: note, issuer: issuer)
  }
}

extension Authority {
  /// The devices that entered with an invitation. Only root and the inviting device are believed. Judging asks none of it.
  package func devices(enteredBy invitation: InvitationID) -> [PublicKey] {
    entered[invitation, default: []]
  }

  /// The highest number of an invitation of this device with which somebody has entered; 0: none.
  package func lastEnteredSerial(of inviter: PublicKey) -> UInt64 {
    // One that no device gives, since it would count no further, is no reason not to go on.
    entered.keys.lazy.filter { $0.inviter == inviter && $0.serial < 1 << 53 }.map(\.serial).max() ?? 0
  }

  /// What the set says of invitations that were used.
  static func entered(_ set: AdmittedStatements, root: PublicKey) -> [InvitationID: [PublicKey]] {
    var entered: [InvitationID: [PublicKey]] = [:]
    for id in set.order {
      guard let statement = set.all[id], case .membership(let membership) = statement.body,
        let invitation = statement.answeredInvitation,
        statement.issuer == root || statement.issuer == invitation.inviter
      else { continue }
      entered[invitation, default: []].append(membership.device)
    }
    return entered
  }
}
