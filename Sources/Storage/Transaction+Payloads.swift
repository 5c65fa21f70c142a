import Replication

// Payloads too large for their run travel in pieces, and wait here: each device's apart from all others'. Who writes
// them keeps their bounds.
extension Transaction {
  /// Adds bytes behind those that are there, where the share then comes to what it says.
  package func addPiece(_ bytes: ArraySlice<UInt8>, to share: StagedShare) throws(StoreError) {
    let number = try noteShare(share)
    let insert = try database.statement("INSERT INTO staged_pieces (share, start, bytes) VALUES (?1, ?2, ?3)")
    try insert.bind(1, number)
    try insert.bind(2, Int64(clamping: share.byteCount) - Int64(bytes.count))
    try bytes.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try insert.bind(3, borrowed: bytes)
      try insert.run()
    }
  }

  private func noteShare(_ share: StagedShare) throws(StoreError) -> Int64 {
    let note = try database.statement(
      """
      INSERT INTO staged_shares (partition, payload, device, total, byte_count, whole) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT DO UPDATE SET total=?4, byte_count=?5, whole=?6
      """)
    try note.bind(share.key)
    try note.bind(4, Int64(clamping: share.total))
    try note.bind(5, Int64(clamping: share.byteCount))
    try note.bind(6, share.isWhole ? 1 : 0)
    try note.run()
    guard let number = try shareNumber(share.key) else { throw .damaged("a share of a payload is not there") }
    return number
  }

  package func removePieces(_ key: StagedKey) throws(StoreError) {
    guard let number = try shareNumber(key) else { return }
    let pieces = try database.statement("DELETE FROM staged_pieces WHERE share=?1")
    try pieces.bind(1, number)
    try pieces.run()
    let share = try database.statement("DELETE FROM staged_shares WHERE id=?1")
    try share.bind(1, number)
    try share.run()
  }
}

extension PreparedStatement {
  fileprivate func bind(_ key: StagedKey) throws(StoreError) {
    try bind(1, copied: key.partition.digest.bytes)
    try bind(2, copied: key.hash.bytes)
    try bind(3, copied: key.device.digest.bytes)
  }
}

extension Transaction {
  /// Keeps a whole payload that is not in its run's body. The caller has checked its hash. Once each; in place of one that is
  /// not as it was written.
  package func addLargePayload(_ hash: Digest, bytes: ArraySlice<UInt8>) throws(StoreError) {
    guard try intactPayloadByteCount(hash) == nil else { return }
    let insert = try database.statement(
      """
      INSERT INTO large_payloads (hash, bytes, sum) VALUES (?1, ?2, ?3)
      ON CONFLICT (hash) DO UPDATE SET bytes=?2, sum=?3
      """)
    try insert.bind(1, copied: hash.bytes)
    try bytes.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try insert.bind(2, borrowed: bytes)
      try insert.bind(3, RowSum(ofPayload: bytes).value)
      try insert.run()
    }
  }
}

extension StoreReading where Self: ~Copyable {
  func shareNumber(_ key: StagedKey) throws(StoreError) -> Int64? {
    let rows = try database.statement("SELECT id FROM staged_shares WHERE partition=?1 AND payload=?2 AND device=?3")
    defer { rows.reset() }
    try rows.bind(key)
    return try rows.step() ? rows.integer(0) : nil
  }

  /// What a device has sent so far of a payload: its first bytes.
  package func stagedBytes(_ key: StagedKey) throws(StoreError) -> [UInt8] {
    guard let number = try shareNumber(key) else { return [] }
    let rows = try database.statement("SELECT bytes FROM staged_pieces WHERE share=?1 ORDER BY start")
    defer { rows.reset() }
    try rows.bind(1, number)
    var joined: [UInt8] = []
    while try rows.step() { joined += rows.borrowedBytes(0) }
    return joined
  }

  /// Ascending by their keys. The bytes are not read.
  package func stagedShares() throws(StoreError) -> [StagedShare] {
    let rows = try database.statement(
      """
      SELECT partition, payload, device, total, byte_count, whole FROM staged_shares
      ORDER BY partition, payload, device
      """)
    defer { rows.reset() }
    var shares: [StagedShare] = []
    while try rows.step() {
      guard let partition = Digest(rows.bytes(0)), let hash = Digest(rows.bytes(1)), let device = Digest(rows.bytes(2))
      else { throw .damaged("a share of a payload") }
      let key = StagedKey(device: DeviceID(device), partition: PartitionID(partition), hash: hash)
      shares.append(
        StagedShare(
          key, total: UInt64(clamping: rows.integer(3)), byteCount: UInt64(clamping: rows.integer(4)),
          isWhole: rows.integer(5) == 1))
    }
    return shares
  }

  /// Nil where it is not here as it was written.
  func intactPayloadByteCount(_ hash: Digest) throws(StoreError) -> Int? {
    let rows = try database.statement("SELECT bytes, sum FROM large_payloads WHERE hash=?1")
    defer { rows.reset() }
    try rows.bind(1, copied: hash.bytes)
    guard try rows.step() else { return nil }
    let isIntact = rows.optionalInteger(1).map { RowSum(ofPayload: rows.borrowedBytes(0)).value == $0 } ?? true
    return isIntact ? rows.byteCount(0) : nil
  }

  /// Nil also where it is not as it was written.
  func intactPayload(_ hash: Digest) throws(StoreError) -> [UInt8]? {
    do {
      return try largePayload(hash)
    } catch {
      guard error.isOfOneRow else { throw error }
      return nil
    }
  }

  /// A payload kept whole; nil where it has not arrived.
  package func largePayload(_ hash: Digest) throws(StoreError) -> [UInt8]? {
    let rows = try database.statement("SELECT bytes, sum FROM large_payloads WHERE hash=?1")
    defer { rows.reset() }
    try rows.bind(1, copied: hash.bytes)
    guard try rows.step() else { return nil }
    if let sum = rows.optionalInteger(1), RowSum(ofPayload: rows.borrowedBytes(0)).value != sum {
      throw .damagedLog("a payload of \(rows.byteCount(0)) bytes is not as it was written")
    }
    return rows.bytes(0)
  }
}
