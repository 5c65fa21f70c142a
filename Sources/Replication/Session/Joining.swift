/// Names an invitation for ever: serial numbers are the inviting device's own.
package struct InvitationID: Hashable, Sendable {
  package let inviter: PublicKey
  package let serial: UInt64
  package init(inviter: PublicKey, serial: UInt64) { (self.inviter, self.serial) = (inviter, serial) }
}

/// Asks to be admitted to the fleet, and shows that the asker has the invitation's secret. Whom the device will act for,
/// and as what, is in the inviter's record.
package struct JoinRequest: Sendable, Equatable {
  /// Of the dialer: whoever does not know the fleet learns nothing of it from being asked.
  package var fleetProof: Digest
  package var invitation: InvitationID
  package var device: PublicKey
  package var label: Text
  package var proof: Digest
  package var extensions = MessageExtensions()

  package init(
    fleetProof: Digest, invitation: InvitationID, device: PublicKey, label: Text, proof: Digest = .zero
  ) {
    (self.fleetProof, self.invitation, self.device) = (fleetProof, invitation, device)
    (self.label, self.proof) = (label, proof)
  }
}

/// The device is a member. Shows that the answer is by who made the invitation.
package struct JoinAcceptance: Sendable, Equatable {
  package var proof: Digest
  package var extensions = MessageExtensions()
  package init(proof: Digest = .zero) { self.proof = proof }
}

package enum JoinRefusal: Hashable, Sendable {
  /// The inviting device made no invitation of this number, or not with this secret.
  case wrongCode
  case expired
  case cancelled
  /// Another device has entered with it.
  case used
  /// This node did not make the invitation: the device of this label did. Empty where the label is not known.
  case askInviter(label: Text)
  /// The inviting device has made the invitation, and may not admit anybody any more.
  case notAnAdmin
  /// Admins are admitted where the fleet's root key lies, and it is not there.
  case rootKeyMissing
  case busy
}

/// A fixed layout over the connection's exporter value and all that is said, so that a proof belongs to one connection,
/// one direction and one device.
package enum JoinProof {
  private enum Role: UInt8 {
    case joiner = 1
    case inviter = 2
  }

  /// Over what the joiner shows that it has the secret.
  package static func ofJoiner(_ request: JoinRequest, to fleet: FleetID, exporter: Digest) -> [UInt8] {
    bytes(request, fleet, .joiner, request.extensions, exporter)
  }

  /// Over what the inviting device shows that it made the invitation.
  package static func ofInviter(
    _ acceptance: JoinAcceptance, to request: JoinRequest, of fleet: FleetID, exporter: Digest
  ) -> [UInt8] {
    bytes(request, fleet, .inviter, acceptance.extensions, exporter)
  }

  private static func bytes(
    _ request: JoinRequest, _ fleet: FleetID, _ role: Role, _ extensions: MessageExtensions, _ exporter: Digest
  ) -> [UInt8] {
    var out = DomainTag.join.bytes
    exporter.append(to: &out)
    out.append(role.rawValue)
    fleet.digest.append(to: &out)
    request.invitation.inviter.raw.append(to: &out)
    appendBigEndian(request.invitation.serial, to: &out)
    request.device.raw.append(to: &out)
    appendCounted(request.label.bytes, to: &out)
    extensions.append(to: &out)
    return out
  }
}

extension Digest {
  /// Takes the same time wherever the two differ.
  package func equalsInConstantTime(_ other: Digest) -> Bool {
    let (a, b) = (words, other.words)
    return (a.0 ^ b.0) | (a.1 ^ b.1) | (a.2 ^ b.2) | (a.3 ^ b.3) == 0
  }
}
