import Replication

/// What this device has promised to whoever shows a secret: to be made a member once.
package struct Invitation: Hashable, Sendable {
  /// Of this device's invitations; from 1 on.
  package let serial: UInt64
  package let secret: InvitationSecret
  /// Whom the new device will act for, and as what.
  package let user: Text
  package let role: Text
  package let profile: ValueMap
  /// By this device's wall clock alone, in milliseconds since 1970.
  package let expires: Int64
  package var state: State

  package enum State: Hashable, Sendable {
    case open
    case cancelled
    /// By this device.
    case used(PublicKey)
  }

  package init(
    serial: UInt64, secret: InvitationSecret, user: Text, role: Text, profile: ValueMap, expires: Int64,
    state: State = .open
  ) {
    (self.serial, self.secret, self.user, self.role) = (serial, secret, user, role)
    (self.profile, self.expires, self.state) = (profile, expires, state)
  }

  package func isExpired(at wallMilliseconds: Int64) -> Bool { wallMilliseconds >= expires }

  package func isOpen(at wallMilliseconds: Int64) -> Bool { state == .open && !isExpired(at: wallMilliseconds) }
}

/// Whom somebody wants to invite.
package struct InvitationDraft: Sendable {
  package let user: Text
  package let role: Text
  package let profile: ValueMap
  package let validMilliseconds: Int64

  package init(user: Text, role: Text, profile: ValueMap, validMilliseconds: Int64) {
    (self.user, self.role, self.profile) = (user, role, profile)
    self.validMilliseconds = validMilliseconds
  }

  /// So long may an invitation be open.
  package static let longestMilliseconds: Int64 = 366 * 24 * 3_600 * 1_000
}

/// The fleet's root key, where it lies beside the device's.
package struct RootSigner: Sendable {
  package let key: PublicKey
  package let sign: @Sendable ([UInt8]) -> Signature
  package init(key: PublicKey, sign: @escaping @Sendable ([UInt8]) -> Signature) { (self.key, self.sign) = (key, sign) }
}
