import Engine
import Replication
import Wire

/// What stands for the state of an invitation in its row.
private enum StateNumber {
  static let open: Int64 = 0
  static let cancelled: Int64 = 1
  static let used: Int64 = 2
}

extension Transaction {
  func put(_ invitation: Invitation) throws(StoreError) {
    guard let serial = Int64(exactly: invitation.serial) else {
      throw .outOfRange(what: "invitation", value: invitation.serial)
    }
    let insert = try database.statement(
      """
      INSERT INTO invitations (serial, secret, user, role, profile, expires, state, device)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      ON CONFLICT (serial) DO UPDATE SET secret=excluded.secret, user=excluded.user, role=excluded.role,
        profile=excluded.profile, expires=excluded.expires, state=excluded.state, device=excluded.device
      """)
    try insert.bind(1, serial)
    try insert.bind(2, copied: invitation.secret.bytes)
    try insert.bind(3, invitation.user)
    try insert.bind(4, invitation.role)
    var profile = CBORWriter(reserving: 64)
    profile.value(.map(invitation.profile))
    try insert.bind(5, copied: profile.bytes)
    try insert.bind(6, invitation.expires)
    switch invitation.state {
    case .open: try insert.bind(7, StateNumber.open)
    case .cancelled: try insert.bind(7, StateNumber.cancelled)
    case .used(let device):
      try insert.bind(7, StateNumber.used)
      try insert.bind(8, copied: device.bytes)
    }
    try insert.run()
  }

  func removeInvitation(_ serial: UInt64) throws(StoreError) {
    guard let serial = Int64(exactly: serial) else { return }
    let delete = try database.statement("DELETE FROM invitations WHERE serial=?1")
    try delete.bind(1, serial)
    try delete.run()
  }
}

extension StoreReading where Self: ~Copyable {
  /// Ascending by their numbers.
  package func invitations() throws(StoreError) -> [Invitation] {
    let rows = try database.statement(
      "SELECT serial, secret, user, role, profile, expires, state, device FROM invitations ORDER BY serial")
    defer { rows.reset() }
    var found: [Invitation] = []
    while try rows.step() {
      guard let invitation = Invitation(rows) else { throw .damaged("an invitation does not hold") }
      found.append(invitation)
    }
    return found
  }
}

extension Invitation {
  fileprivate init?(_ row: PreparedStatement) {
    var reader = CBORReader(row.bytes(4))
    guard let serial = UInt64(exactly: row.integer(0)), let secret = InvitationSecret(row.bytes(1)),
      case .map(let profile)? = try? reader.readValue()
    else { return nil }
    let state: State
    switch row.integer(6) {
    case StateNumber.open: state = .open
    case StateNumber.cancelled: state = .cancelled
    case StateNumber.used:
      guard let device = PublicKey(row.bytes(7)) else { return nil }
      state = .used(device)
    default: return nil
    }
    self.init(
      serial: serial, secret: secret, user: Text(row.text(2)), role: Text(row.text(3)), profile: profile,
      expires: row.integer(5), state: state)
  }
}
