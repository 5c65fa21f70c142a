import Engine
import Identity
import Replication
import Storage

/// What a row of a document turned out to hold.
enum RowContent {
  /// The row as it is now, where it had to be made anew.
  case state(DocumentRow, DocumentState)
  case gone
  case damaged(Value)
}

extension Node {
  /// Decodes a row. One that does not read is made anew from the log first, if that has it, and with it those beside it: each
  /// costs a walk through the log, however many they are.
  func content(
    of row: DocumentRow, _ partition: PartitionName, _ collection: Text, beside others: ArraySlice<DocumentRow> = []
  ) throws(NodeError) -> RowContent {
    if let state = Node.intact(row) { return .state(row, state) }
    let damaged = [row] + others.filter { Node.intact($0) == nil }
    try mend(Set(damaged.map { DocumentKey(collection: collection, id: $0.key) }), in: partition)
    guard let again = try self.row(of: row.key, partition, collection) else { return .gone }
    if let state = Node.intact(again) { return .state(again, state) }
    return .damaged(Value(canonicalID: row.key) ?? .bytes(row.key))
  }

  /// The document that a row shows; nil where nothing lives, or it does not read, which `met` is told.
  func shown(
    _ row: DocumentRow, _ partition: PartitionName, _ collection: Text, beside others: ArraySlice<DocumentRow> = [],
    met: (Value) throws(NodeError) -> Void
  ) throws(NodeError) -> StoredDocument? {
    switch try content(of: row, partition, collection, beside: others) {
    case .state(let row, let state): return StoredDocument(row, state)
    case .gone: return nil
    case .damaged(let id):
      try met(id)
      return nil
    }
  }

  private static func intact(_ row: DocumentRow) -> DocumentState? {
    Value(canonicalID: row.key) == nil ? nil : try? DocumentState(stored: row)
  }

  /// Whether all of them read afterwards.
  @discardableResult
  func mend(_ keys: Set<DocumentKey>, in partition: PartitionName) throws(NodeError) -> Bool {
    let id = partition.id(fleet: files.fleet, hash: SHA256.hash)
    return try onEngine { $0.mend(keys, in: id) }
  }

  func row(
    of key: [UInt8], _ partition: PartitionName, _ collection: Text
  ) throws(NodeError) -> DocumentRow? {
    try reading { reader in
      guard let place = try self.place(partition, collection, reader) else { return nil }
      return try reader.document(place.partition, place.collection, key: key)
    }
  }

  static func refusal(ofDamaged id: Value) -> NodeError { NodeError(.damaged, DamagedDocument.sentence(of: id)) }

  package func damaged() throws(NodeError) -> [DamagedStatus] { try onEngine { $0.damagedDocuments() } }

  static func findings(_ damaged: [DamagedStatus], mended: [String], _ mendedCount: Int) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if !damaged.isEmpty {
      findings.append(
        DoctorFinding(
          .problem, "document-damaged",
          "Documents do not read on this device, nor can its log give them again: "
            + "\(listed(damaged.map { "\(DamagedDocument.text(of: $0.id)) of \($0.collection) in \($0.partition)" }, damaged.count)). "
            + "Everything else goes on.",
          remedy:
            "Write each whole (seamesh put), which replaces it everywhere. Or stop the node, move seamesh.db and "
            + "seamesh.db-wal aside together and start it: everything is fetched anew from the fleet. Check the disk."))
    }
    if mendedCount > 0 {
      findings.append(
        DoctorFinding(
          .warning, "document-mended",
          "Documents did not read and were made anew from the log, with nothing lost: \(listed(mended, mendedCount)).",
          remedy: "Check the disk: what was damaged once may be damaged again."))
    }
    return findings
  }

  static func findings(damagedRuns: Int, mended: Int) -> [DoctorFinding] {
    var findings: [DoctorFinding] = []
    if damagedRuns > 0 {
      findings.append(
        DoctorFinding(
          .problem, "log-damaged",
          "\(damagedRuns) runs of this device's log are not as they were written: they are not passed on, and asked of other "
            + "devices anew. Everything else goes on.",
          remedy: "Let it meet a device that has them. Check the disk."))
    }
    if mended > 0 {
      findings.append(
        DoctorFinding(
          .warning, "log-mended",
          "\(mended) runs of the log were not as they were written and came anew from other devices, with nothing lost.",
          remedy: "Check the disk: what was damaged once may be damaged again."))
    }
    return findings
  }

  private static let listedLimit = 16

  private static func listed(_ names: [String], _ count: Int) -> String {
    let shown = names.prefix(listedLimit)
    return shown.joined(separator: "; ") + (count > shown.count ? "; and \(count - shown.count) more" : "")
  }
}

extension NodeEngine {
  func damagedDocuments() -> [DamagedStatus] {
    state.quarantine.entries.flatMap { partition, documents in
      documents.map { key, entry in
        DamagedStatus(
          partition: state.mesh.partitions[partition]?.name.text.string ?? "", collection: key.collection.string,
          id: Value(canonicalID: key.id) ?? .bytes(key.id), reason: entry.reason)
      }
    }.sorted { ($0.partition, $0.collection, "\($0.id)") < ($1.partition, $1.collection, "\($1.id)") }
  }
}
