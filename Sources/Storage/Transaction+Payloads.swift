import Replication

/// Payloads too large for their run travel in pieces, in any order and over several connections, and wait here.
package enum StagedPieces {
  /// Bytes of all pieces together: 64 of the largest payloads.
  package static let byteLimit = 256 * 1024 * 1024
  /// What a piece costs beside its bytes: a flood of tiny or empty ones counts by these, against the limit. A piece of
  /// the usual size has sixteen times as much.
  package static let rowByteCount = 4 * 1024
}

extension Database {
  /// Bytes of all pieces and of their rows.
  func stagedByteCount() throws(StoreError) -> Int64? {
    try integer("SELECT total(length(bytes)) + \(StagedPieces.rowByteCount) * count(*) FROM staged_pieces")
  }
}

extension Transaction {
  /// Keeps a piece. A second one at the same start is dropped. Where the pieces would exceed
  /// ``StagedPieces/byteLimit`` all earlier ones go: they only spare a peer sending them again.
  package func addPiece(of payload: Digest, start: Int, bytes: ArraySlice<UInt8>) throws(StoreError) {
    let cost = Int64(bytes.count + StagedPieces.rowByteCount)
    if store.stagedBytes + cost > StagedPieces.byteLimit { try removeAllPieces() }
    let insert = try database.statement(
      "INSERT INTO staged_pieces (payload, start, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
    try insert.bind(1, copied: payload.bytes)
    try insert.bind(2, Int64(start))
    try bytes.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try insert.bind(3, borrowed: bytes)
      try insert.run()
    }
    if database.changedRows == 1 { store.stagedBytes += cost }
  }

  private func removeAllPieces() throws(StoreError) {
    try database.statement("DELETE FROM staged_pieces").run()
    store.stagedBytes = 0
  }

  /// Drops the pieces of a payload that is complete, or wanted no longer.
  package func removePieces(of payload: Digest) throws(StoreError) {
    let present = try stagedByteCount(of: payload)
    let delete = try database.statement("DELETE FROM staged_pieces WHERE payload=?1")
    try delete.bind(1, copied: payload.bytes)
    try delete.run()
    store.stagedBytes -= present
  }
}

extension Transaction {
  /// Keeps a whole payload that is not in its run's body. The caller has checked its hash. Once each.
  package func addLargePayload(_ hash: Digest, bytes: ArraySlice<UInt8>) throws(StoreError) {
    let insert = try database.statement(
      "INSERT INTO large_payloads (hash, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
    try insert.bind(1, copied: hash.bytes)
    try bytes.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try insert.bind(2, borrowed: bytes)
      try insert.run()
    }
  }
}

extension StoreReading where Self: ~Copyable {
  /// Bytes of all pieces of one payload and of their rows, overlapping ones counted twice.
  func stagedByteCount(of payload: Digest) throws(StoreError) -> Int64 {
    let rows = try database.statement(
      "SELECT ifnull(sum(length(bytes)),0), count(*) FROM staged_pieces WHERE payload=?1")
    defer { rows.reset() }
    try rows.bind(1, copied: payload.bytes)
    return try rows.step() ? rows.integer(0) + rows.integer(1) * Int64(StagedPieces.rowByteCount) : 0
  }

  /// How far pieces join from the first byte on. Their bytes are not read: this is asked after every commit.
  private func joinedByteCount(of payload: Digest) throws(StoreError) -> UInt64 {
    let rows = try database.statement(
      "SELECT start, length(bytes) FROM staged_pieces WHERE payload=?1 ORDER BY start")
    defer { rows.reset() }
    try rows.bind(1, copied: payload.bytes)
    var joined: Int64 = 0
    while joined < Run.changePayloadByteLimit, try rows.step(), rows.integer(0) <= joined {
      joined = max(joined, rows.integer(0) &+ rows.integer(1))
    }
    return UInt64(clamping: min(joined, Int64(Run.changePayloadByteLimit)))
  }

  /// The payload from its first byte as far as pieces join, at most `byteLimit`: its count is where to go on asking.
  package func stagedPayload(_ payload: Digest, byteLimit: Int) throws(StoreError) -> [UInt8] {
    let rows = try database.statement("SELECT start, bytes FROM staged_pieces WHERE payload=?1 ORDER BY start")
    defer { rows.reset() }
    try rows.bind(1, copied: payload.bytes)
    var joined: [UInt8] = []
    while joined.count < byteLimit, try rows.step() {
      let start = Int(clamping: rows.integer(0))
      guard start >= 0, start <= joined.count else { break }
      let known = joined.count - start
      joined.append(contentsOf: rows.borrowedBytes(1).dropFirst(known).prefix(byteLimit - joined.count))
    }
    return joined
  }

  /// Payloads of which pieces are here, in byte order of their hashes, and how many of the first bytes.
  package func stagedPayloads(limit: Int) throws(StoreError) -> [Replication.StagedPayload] {
    let rows = try database.statement("SELECT DISTINCT payload FROM staged_pieces ORDER BY payload LIMIT ?1")
    try rows.bind(1, Int64(clamping: limit))
    var hashes: [Digest] = []
    while try rows.step() { if let hash = Digest(rows.bytes(0)) { hashes.append(hash) } }
    rows.reset()
    return try hashes.map { hash throws(StoreError) in
      Replication.StagedPayload(hash: hash, byteCount: try joinedByteCount(of: hash))
    }
  }

  /// A payload kept whole; nil where it has not arrived.
  package func largePayload(_ hash: Digest) throws(StoreError) -> [UInt8]? {
    let rows = try database.statement("SELECT bytes FROM large_payloads WHERE hash=?1")
    defer { rows.reset() }
    try rows.bind(1, copied: hash.bytes)
    return try rows.step() ? rows.bytes(0) : nil
  }
}
