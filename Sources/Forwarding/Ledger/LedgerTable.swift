import Replication
import Storage
import Wire

/// The tables of a ledger that are read to verify it, or to fill a log from it.
package enum LedgerTable: String, CaseIterable, Sendable {
  case ledger, partitions, statements, runs, changes, payloads, forks, accepted
  /// Derived from the others, and no part of the ledger: held against the sums that were written with them, and against what the
  /// runs make of them.
  case documents
  /// How far relays have come with them: only when is read of it.
  case documentPositions = "document_positions"
  case documentSteps = "document_steps"

  package static let ofLedger = allCases.filter { ![.documents, .documentPositions, .documentSteps].contains($0) }
  /// What a verified ledger vouches for.
  package static let verified = ofLedger + [.documents]

  /// `time`: in microseconds since 1970.
  enum Kind { case bytes, number, text, time }

  struct Column {
    let name: String
    let kind: Kind
    let isNullable: Bool
    /// How a server is asked for it; nil: by its name.
    let expression: String?
    /// The server's own note, which nothing that was signed or summed says.
    let isNote: Bool

    init(
      _ name: String, _ kind: Kind = .bytes, isNullable: Bool = false, isNote: Bool = false,
      as expression: String? = nil
    ) {
      (self.name, self.kind, self.isNullable, self.isNote) = (name, kind, isNullable, isNote)
      self.expression = expression ?? (kind == .time ? "(extract(epoch FROM \(name)) * 1000000)::bigint" : nil)
    }
  }

  private static let arrived = Column("arrived", .time, isNote: true)

  private static let chainColumns = [Column("partition"), Column("replica")]

  var columns: [Column] {
    switch self {
    case .ledger: [Column("fleet")]
    case .partitions: [Column("partition"), Column("name", .text)]
    case .statements: [Column("id"), Column("encoded"), LedgerTable.arrived]
    case .runs:
      LedgerTable.chainColumns + [
        Column("last", .number), Column("hash"), Column("first", .number), Column("hash_before"), Column("context"),
        Column("body"), LedgerTable.arrived,
      ]
    case .changes:
      LedgerTable.chainColumns + [
        Column("sequence", .number), Column("hash"), Column("hash_before"), Column("run_last", .number),
        Column("stamp_ms", .number), Column("stamp_counter", .number), Column("wall_ms", .number),
        Column("payload_bytes", .number),
      ]
    case .payloads: [Column("partition"), Column("hash"), Column("bytes")]
    case .forks: LedgerTable.chainColumns + [Column("after", .number)]
    case .accepted: LedgerTable.chainColumns + [Column("sequence", .number), Column("tip"), Column("judge")]
    case .documents:
      [
        Column("partition"), Column("collection", .text), Column("id"),
        Column("id_json", .text, isNullable: true, as: "id_json::text"),
        // As a dump has it.
        Column("alive", .text, as: "CASE WHEN alive THEN 't' ELSE 'f' END"), Column("generation", .number),
        Column("body", .text, isNullable: true, as: "body::text"), Column("state"),
        Column("refusal", .text, isNullable: true), Column("sum", isNullable: true),
        Column("unsure", .text, isNote: true, as: "CASE WHEN unsure THEN 't' ELSE 'f' END"),
      ]
    case .documentPositions: [Column("relay"), Column("noted", .time, isNote: true)]
    case .documentSteps: [Column("relay"), Column("process", .text), Column("noted", .time, isNote: true)]
    }
  }

  /// How many of the first columns are the key.
  var keyCount: Int {
    switch self {
    case .ledger, .partitions, .statements, .documentPositions: 1
    case .payloads, .forks, .accepted, .documentSteps: 2
    case .documents: 3
    case .runs, .changes: 4
    }
  }

  /// Those that may be long.
  var longColumns: [String] {
    switch self {
    case .statements: ["encoded"]
    case .runs: ["context", "body"]
    case .payloads: ["bytes"]
    // One that somebody altered may have the one and not the other.
    case .documents: ["state", "body", "refusal"]
    case .ledger, .partitions, .changes, .forks, .accepted, .documentPositions, .documentSteps: []
    }
  }
}

package struct LedgerRow: Equatable, Sendable {
  package let table: LedgerTable
  package var values: [RowValue]

  package init(_ table: LedgerTable, _ values: [RowValue]) { (self.table, self.values) = (table, values) }

  package var key: [RowValue] { Array(values.prefix(table.keyCount)) }

  func finding(_ sentence: String) -> LedgerFinding { LedgerFinding(table, key, sentence) }

  private func value(_ name: String) throws(LedgerFinding) -> RowValue {
    guard let index = table.columns.firstIndex(where: { $0.name == name }), values.indices.contains(index) else {
      throw finding("it has no \(name)")
    }
    return values[index]
  }

  func bytes(_ name: String) throws(LedgerFinding) -> [UInt8] {
    guard case .bytes(let bytes) = try value(name) else { throw finding("\(name) is no bytes") }
    return bytes
  }

  /// Nil where it is null.
  func optionalBytes(_ name: String) throws(LedgerFinding) -> [UInt8]? {
    try value(name) == .null ? nil : try bytes(name)
  }

  func signed(_ name: String) throws(LedgerFinding) -> Int64 {
    guard case .integer(let number) = try value(name) else { throw finding("\(name) is no number") }
    return number
  }

  func number(_ name: String) throws(LedgerFinding) -> UInt64 {
    guard let number = UInt64(exactly: try signed(name)) else { throw finding("\(name) is below zero") }
    return number
  }

  func digest(_ name: String) throws(LedgerFinding) -> Digest {
    guard let digest = Digest(try bytes(name)) else { throw finding("\(name) has not 32 bytes") }
    return digest
  }

  func chain() throws(LedgerFinding) -> ChainKey {
    guard let replica = ReplicaID(try bytes("replica")) else { throw finding("replica has not 16 bytes") }
    return ChainKey(partition: PartitionID(try digest("partition")), replica: replica)
  }
}

/// What of a ledger does not agree, and where: the first thing that was found.
package struct LedgerFinding: Error, Equatable, Sendable, CustomStringConvertible {
  package let table: LedgerTable
  /// Of the row; where one is missing, the key that it would have.
  package let key: [RowValue]
  package let sentence: String

  init(_ table: LedgerTable, _ key: [RowValue], _ sentence: String) {
    (self.table, self.key, self.sentence) = (table, key, sentence)
  }

  /// Keys as they are asked for in SQL.
  package var description: String {
    let named = zip(table.columns, key).map { column, value in
      switch value {
      case .null: "\(column.name) null"
      case .integer(let number): "\(column.name) \(number)"
      case .bytes(let bytes): "\(column.name) \(hexadecimal(bytes))"
      }
    }
    return "seamesh.\(table.rawValue)" + (named.isEmpty ? "" : " (\(named.joined(separator: ", ")))") + ": \(sentence)"
  }
}
