import Replication
import Storage
import Wire

/// Walks the documents of a ledger partition by partition: each row has its sum, and is what the partition's runs make of it.
struct DocumentVerification {
  private let tables: any LedgerTables
  private let fleet: FleetID
  private let cryptography: Cryptography
  private let documents: LedgerCursor
  private let marks: LedgerCursor
  private var folder: LedgerFolding?
  private var lag = LedgerLag()
  private var areStatementsBehind = false
  private(set) var count = 0
  private(set) var deadLetters = 0
  private(set) var folding: LedgerTally.Folding?

  init(_ tables: any LedgerTables, _ fleet: FleetID, _ cryptography: Cryptography) {
    (self.tables, self.fleet, self.cryptography) = (tables, fleet, cryptography)
    (documents, marks) = (LedgerCursor(tables, .documents), LedgerCursor(tables, .accepted))
  }

  /// Documents are to be made anew as well.
  mutating func fold() throws {
    lag = try LedgerLag(tables)
    areStatementsBehind = try lag.coversStatements(tables)
    folder = try LedgerFolding(tables, fleet, cryptography)
    folding = LedgerTally.Folding()
    folding?.relaysBehind = lag.relays
    folding?.areAllInDoubt = areStatementsBehind
  }

  mutating func verify(_ progress: (LedgerTally.Folding) -> Void) throws {
    let partitions = LedgerCursor(tables, .partitions)
    while let row = try partitions.next() {
      if let early = try documents.peek(), early.key[0] < row.key[0] { throw early.finding(withoutPartition) }
      try verify(row, progress)
    }
    if let left = try documents.peek() { throw left.finding(withoutPartition) }
  }

  private let withoutPartition = "its partition has no row in seamesh.partitions"

  private mutating func verify(_ partition: LedgerRow, _ progress: (LedgerTally.Folding) -> Void) throws {
    let marks = try marks(of: partition.key[0])
    guard let folder else { return try verifySums(of: partition.key[0]) }
    let name = try LedgerVerifier.name(partition, fleet, cryptography.hash)
    var told = folding ?? LedgerTally.Folding()
    let outcome = try folder.fold(name, lag) {
      told.runs += 1
      progress(told)
    }
    told.runsInDoubt += outcome.runsInDoubt
    folding = told
    guard outcome.isWhole else {
      folding?.partitionsLeftOut += 1
      return try verifySums(of: partition.key[0])
    }
    var comparison = DocumentComparison(
      folder.store, PartitionID(try partition.digest("partition")), outcome,
      isBehind: areStatementsBehind || marks != outcome.accepted)
    try comparison.compare { try next(of: partition.key[0]) }
    folding?.documentsBehind += comparison.behind
  }

  private mutating func verifySums(of partition: RowValue) throws {
    while try next(of: partition) != nil {}
  }

  private mutating func next(of partition: RowValue) throws -> LedgerRow? {
    guard let row = try documents.peek(), row.key[0] == partition else { return nil }
    try documents.next()
    guard try row.optionalBytes("sum") == DocumentSum.of(row, cryptography.hash).bytes else {
      throw row.finding("the document is not as a relay wrote it: it does not have its sum")
    }
    count += 1
    if try row.bytes("alive") == Array("t".utf8), try row.optionalBytes("refusal") != nil { deadLetters += 1 }
    return row
  }

  /// How far each chain counts, as relays say: where that differs from what runs and statements say, their word is of another
  /// moment, and so are the documents.
  private func marks(of partition: RowValue) throws -> VersionVector {
    var vector = VersionVector()
    while let row = try marks.peek(), row.key[0] <= partition {
      try marks.next()
      guard row.key[0] == partition, let tip = TipHash(try row.bytes("tip")) else { continue }
      let sequence = try row.number("sequence")
      if sequence > 0 { vector[try row.chain().replica] = ChainPosition(sequence: sequence, tip: tip) }
    }
    return vector
  }
}
