import Engine
import Replication
import Wire

extension Transaction {
  /// In place of an earlier word of the same device and kind about the partition.
  func put(_ kept: KeptHoldings, in partition: PartitionID) throws(StoreError) {
    let holdings = kept.holdings
    guard let number = Int64(exactly: holdings.number) else {
      throw .outOfRange(what: "number of holdings", value: holdings.number)
    }
    let insert = try database.statement(
      """
      INSERT INTO holdings (partition, device, kind, number, heard, encoded) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT (partition, device, kind) DO UPDATE
        SET number=excluded.number, heard=excluded.heard, encoded=excluded.encoded WHERE excluded.number >= number
      """)
    try insert.bind(1, copied: partition.digest.bytes)
    try insert.bind(2, copied: holdings.device.bytes)
    try insert.bind(3, Int64(clamping: holdings.kind.rawValue))
    try insert.bind(4, number)
    try insert.bind(5, kept.heard)
    try insert.bind(6, copied: HoldingsCodec.encode(kept.signed))
    try insert.run()
  }
}

extension StoreReading where Self: ~Copyable {
  /// In the order of partition, device and kind.
  package func holdings() throws(StoreError) -> [KeptHoldings] {
    let rows = try database.statement("SELECT heard, encoded FROM holdings ORDER BY partition, device, kind")
    defer { rows.reset() }
    var found: [KeptHoldings] = []
    while try rows.step() {
      guard let signed = try? HoldingsCodec.decode(rows.bytes(1)[...]) else {
        throw .damaged("what a device says that it holds does not read")
      }
      found.append(KeptHoldings(signed, heard: rows.integer(0)))
    }
    return found
  }
}
