import Replication

extension Transaction {
  /// Nil takes the key away.
  package func setMeta(_ value: [UInt8]?, for key: MetaKey) throws(StoreError) { try database.setMeta(key, value) }

  package func setInteger(_ value: UInt64, for key: MetaKey) throws(StoreError) {
    try database.setNumber(named: Text(key.rawValue), value)
  }

  /// False where it is there already. At most ``Statement/countLimit``. `arrived`: when it came, by this node's clock; 0
  /// where that is not known.
  @discardableResult
  package func addStatement(id: Digest, encoded: [UInt8], arrived: Int64 = 0) throws(StoreError) -> Bool {
    let count = try database.statement("SELECT count(*) FROM statements")
    let present = try count.step() ? count.integer(0) : 0
    count.reset()
    guard present < Statement.countLimit else {
      throw .limitReached(what: "statements", limit: Statement.countLimit)
    }
    let insert = try database.statement(
      """
      INSERT INTO statements (arrival, id, encoded, arrived)
      VALUES (max((SELECT coalesce(max(arrival), 0) FROM statements), ?4) + 1, ?1, ?2, ?3) ON CONFLICT DO NOTHING
      """)
    try insert.bind(1, copied: id.bytes)
    try insert.bind(2, copied: encoded)
    try insert.bind(3, arrived)
    try insert.bind(4, Int64(clamping: try statementsReached()))
    try insert.run()
    return database.changedRows == 1
  }

  /// Its number is not given again: whoever reads on from there would miss what came in its place.
  package func removeStatement(_ id: Digest) throws(StoreError) {
    let last = try database.statement("SELECT max(arrival) FROM statements")
    let reached = try last.step() ? UInt64(clamping: last.optionalInteger(0) ?? 0) : 0
    last.reset()
    if try reached > statementsReached() { try setInteger(reached, for: .statementsReached) }
    let delete = try database.statement("DELETE FROM statements WHERE id=?1")
    try delete.bind(1, copied: id.bytes)
    try delete.run()
  }

  private func statementsReached() throws(StoreError) -> UInt64 {
    try database.number(named: Text(MetaKey.statementsReached.rawValue)) ?? 0
  }

  package func subscribe(_ pattern: Text) throws(StoreError) {
    let insert = try database.statement("INSERT INTO subscriptions (pattern) VALUES (?1) ON CONFLICT DO NOTHING")
    try insert.bind(1, pattern)
    try insert.run()
  }

  package func unsubscribe(_ pattern: Text) throws(StoreError) {
    let delete = try database.statement("DELETE FROM subscriptions WHERE pattern=?1")
    try delete.bind(1, pattern)
    try delete.run()
  }

  /// Notes a contact, and the address it was over where that can be dialled again. The oldest address goes when there
  /// are more than ``StoredPeer/addressLimit``, the peer longest unseen when there are more than
  /// ``StoredPeer/countLimit``.
  package func noteContact(_ device: DeviceID, address: String?, time: Int64) throws(StoreError) {
    let contact = try database.statement(
      """
      INSERT INTO peers (device, last_contact) VALUES (?1, ?2)
      ON CONFLICT (device) DO UPDATE SET last_contact=max(last_contact, excluded.last_contact)
      """)
    try contact.bind(1, copied: device.digest.bytes)
    try contact.bind(2, time)
    try contact.run()
    if let address { try noteAddress(address, of: device, time: time) }
    try forgetOldPeers()
  }

  private func noteAddress(_ address: String, of device: DeviceID, time: Int64) throws(StoreError) {
    let insert = try database.statement(
      """
      INSERT INTO peer_addresses (device, address, last_used) VALUES (?1, ?2, ?3)
      ON CONFLICT (device, address) DO UPDATE SET last_used=max(last_used, excluded.last_used)
      """)
    try insert.bind(1, copied: device.digest.bytes)
    try insert.bind(2, Text(address))
    try insert.bind(3, time)
    try insert.run()
    let trim = try database.statement(
      """
      DELETE FROM peer_addresses WHERE device=?1 AND address NOT IN
        (SELECT address FROM peer_addresses WHERE device=?1 ORDER BY last_used DESC, address LIMIT ?2)
      """)
    try trim.bind(1, copied: device.digest.bytes)
    try trim.bind(2, Int64(StoredPeer.addressLimit))
    try trim.run()
  }

  private func forgetOldPeers() throws(StoreError) {
    let trim = try database.statement(
      "DELETE FROM peers WHERE device IN (SELECT device FROM peers ORDER BY last_contact DESC, device LIMIT -1 OFFSET ?1)"
    )
    try trim.bind(1, Int64(StoredPeer.countLimit))
    try trim.run()
    guard database.changedRows > 0 else { return }
    try database.statement("DELETE FROM peer_addresses WHERE device NOT IN (SELECT device FROM peers)").run()
  }
}

extension StoredPeer {
  /// Peers remembered: far more than a fleet has devices, and little enough to read at once.
  package static let countLimit = 4_096
}
