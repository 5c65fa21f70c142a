import Replication

/// What can be asked of a store: by its writer, inside a transaction (which sees its own writes), and by readers.
///
/// Answers are whole arrays, bounded by the caller's limits, so that no snapshot stays open between calls.
package protocol StoreReading: ~Copyable {
  var database: Database { get }
  var numbers: NumberCache { get }
}

extension StoreReading where Self: ~Copyable {
  // MARK: Partitions and chains

  /// All of them, in the order they were met.
  package func partitions() throws(StoreError) -> [StoredPartition] {
    let rows = try database.statement(
      "SELECT id, hash, name, documents, changes, log_bytes FROM partitions ORDER BY id")
    defer { rows.reset() }
    var found: [StoredPartition] = []
    while try rows.step() { found.append(try StoredPartition(row: rows)) }
    return found
  }

  package func partition(_ id: PartitionID) throws(StoreError) -> StoredPartition? {
    let rows = try database.statement(
      "SELECT id, hash, name, documents, changes, log_bytes FROM partitions WHERE hash=?1")
    defer { rows.reset() }
    try rows.bind(1, copied: id.digest.bytes)
    return try rows.step() ? try StoredPartition(row: rows) : nil
  }

  /// All chains of all partitions in the order they were met, or those of one in replica order.
  package func chains(of partition: PartitionNumber? = nil) throws(StoreError) -> [StoredChain] {
    let rows = try database.statement(
      partition == nil
        ? """
        SELECT id, partition, replica, received_sequence, received_hash, accepted_sequence, accepted_hash, hold_reason
        FROM chains ORDER BY id
        """
        : """
        SELECT id, partition, replica, received_sequence, received_hash, accepted_sequence, accepted_hash, hold_reason
        FROM chains WHERE partition=?1 ORDER BY replica
        """)
    defer { rows.reset() }
    if let partition { try rows.bind(1, partition.rawValue) }
    var found: [StoredChain] = []
    while try rows.step() { found.append(try StoredChain(row: rows)) }
    return found
  }

  package func chain(_ partition: PartitionNumber, _ replica: ReplicaID) throws(StoreError) -> StoredChain? {
    let rows = try database.statement(
      """
      SELECT id, partition, replica, received_sequence, received_hash, accepted_sequence, accepted_hash, hold_reason
      FROM chains WHERE partition=?1 AND replica=?2
      """)
    defer { rows.reset() }
    try rows.bind(1, partition.rawValue)
    try rows.bind(2, copied: replica.bytes)
    return try rows.step() ? try StoredChain(row: rows) : nil
  }

  /// Nil where the partition has never been met.
  package func partitionNumber(_ id: PartitionID) throws(StoreError) -> PartitionNumber? {
    if let known = numbers.partitions[id] { return known }
    let rows = try database.statement("SELECT id FROM partitions WHERE hash=?1")
    defer { rows.reset() }
    try rows.bind(1, copied: id.digest.bytes)
    guard try rows.step() else { return nil }
    let number = PartitionNumber(rawValue: rows.integer(0))
    numbers.remember(id, number)
    return number
  }

  /// Nil where the chain has never been met.
  package func chainNumber(_ partition: PartitionNumber, _ replica: ReplicaID) throws(StoreError) -> ChainNumber? {
    let key = NumberCache.ChainKey(partition: partition, replica: replica)
    if let known = numbers.chains[key] { return known }
    let rows = try database.statement("SELECT id FROM chains WHERE partition=?1 AND replica=?2")
    defer { rows.reset() }
    try rows.bind(1, partition.rawValue)
    try rows.bind(2, copied: replica.bytes)
    guard try rows.step() else { return nil }
    let number = ChainNumber(rawValue: rows.integer(0), partition: partition)
    numbers.remember(key, number)
    return number
  }

  // MARK: Facts

  package func meta(_ key: MetaKey) throws(StoreError) -> [UInt8]? { try database.meta(key) }

  /// A number written by ``Transaction/setInteger(_:for:)``.
  package func integer(_ key: MetaKey) throws(StoreError) -> UInt64? { try database.number(key) }

  /// In order of arrival.
  package func statements() throws(StoreError) -> [StoredStatement] {
    let rows = try database.statement("SELECT arrival, id, encoded, arrived FROM statements ORDER BY arrival")
    defer { rows.reset() }
    var found: [StoredStatement] = []
    while try rows.step() {
      guard let id = Digest(rows.bytes(1)) else { throw .damaged("a statement's id") }
      let arrived = rows.integer(3)
      found.append(
        StoredStatement(
          arrival: rows.integer(0), arrived: arrived == 0 ? nil : arrived, id: id, encoded: rows.bytes(2)))
    }
    return found
  }

  /// In byte order.
  package func subscriptions() throws(StoreError) -> [Text] {
    let rows = try database.statement("SELECT pattern FROM subscriptions ORDER BY pattern")
    defer { rows.reset() }
    var found: [Text] = []
    while try rows.step() { found.append(Text(rows.text(0))) }
    return found
  }

  /// Last seen first.
  package func peers() throws(StoreError) -> [StoredPeer] {
    let rows = try database.statement("SELECT device, last_contact FROM peers ORDER BY last_contact DESC, device")
    var found: [(DeviceID, Int64)] = []
    defer { rows.reset() }
    while try rows.step() {
      guard let device = Digest(rows.bytes(0)) else { throw .damaged("a peer's device id") }
      found.append((DeviceID(device), rows.integer(1)))
    }
    var peers: [StoredPeer] = []
    for (device, lastContact) in found {
      peers.append(StoredPeer(device: device, lastContact: lastContact, addresses: try addresses(of: device)))
    }
    return peers
  }

  private func addresses(of device: DeviceID) throws(StoreError) -> [StoredPeer.Address] {
    let rows = try database.statement(
      "SELECT address, last_used FROM peer_addresses WHERE device=?1 ORDER BY last_used DESC, address")
    defer { rows.reset() }
    try rows.bind(1, copied: device.digest.bytes)
    var found: [StoredPeer.Address] = []
    while try rows.step() { found.append(StoredPeer.Address(text: rows.text(0), lastUsed: rows.integer(1))) }
    return found
  }
}

extension StoredPartition {
  init(row: PreparedStatement) throws(StoreError) {
    guard let hash = Digest(row.bytes(1)) else { throw .damaged("a partition's id") }
    number = PartitionNumber(rawValue: row.integer(0))
    id = PartitionID(hash)
    name = row.optionalText(2).flatMap { try? PartitionName(Text($0)) }
    counters = Counters(documents: row.integer(3), changes: row.integer(4), logBytes: row.integer(5))
  }
}

extension StoredChain {
  init(row: PreparedStatement) throws(StoreError) {
    let partition = PartitionNumber(rawValue: row.integer(1))
    guard let replica = ReplicaID(row.borrowedBytes(2)), let received = Digest(row.borrowedBytes(4)),
      let accepted = Digest(row.borrowedBytes(6))
    else { throw .damaged("chain \(row.integer(0))") }
    number = ChainNumber(rawValue: row.integer(0), partition: partition)
    self.replica = replica
    self.received = ChainMark(sequence: UInt64(clamping: row.integer(3)), hash: received)
    self.accepted = ChainMark(sequence: UInt64(clamping: row.integer(5)), hash: accepted)
    holdReason = row.optionalText(7)
  }
}
