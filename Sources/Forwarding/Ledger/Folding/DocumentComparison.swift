import Replication
import Storage
import Wire

/// Holds the rows of one partition's documents against what its runs make of them.
struct DocumentComparison {
  let store: Store
  let partition: PartitionID
  let outcome: LedgerFolding.Outcome
  /// All of them may lack something that is on its way: a statement, or marks that say something else than the runs.
  let isBehind: Bool
  /// Documents that relays have not sent yet, as far as can be told.
  private(set) var behind = 0

  init(_ store: Store, _ partition: PartitionID, _ outcome: LedgerFolding.Outcome, isBehind: Bool) {
    (self.store, self.partition, self.outcome, self.isBehind) = (store, partition, outcome, isBehind)
  }

  /// - Parameter next: rows of the partition, in the order of their keys.
  /// - Throws: ``LedgerFinding`` of the first that is not as it should be, is missing, or is too much.
  mutating func compare(_ next: () throws -> LedgerRow?) throws {
    var documents = try FoldedDocuments(store, partition)
    var folded = try documents.next()
    while let row = try next() {
      let key = try DocumentComparison.key(of: row)
      // Names with U+0000 are written with another sign there: these documents are dead letters all of them.
      guard !key.collection.string.unicodeScalars.contains("\u{2400}") else { continue }
      while let document = folded, document.key < key {
        try judge(missing: document)
        folded = try documents.next()
      }
      if let document = folded, document.key == key {
        try judge(row, document)
        folded = try documents.next()
      } else {
        try judge(row, nil)
      }
    }
    while let document = folded {
      try judge(missing: document)
      folded = try documents.next()
    }
  }

  private static func key(of row: LedgerRow) throws -> DocumentKey {
    guard let collection = String(validating: try row.bytes("collection"), as: UTF8.self) else {
      throw row.finding("its collection is no text")
    }
    return DocumentKey(collection: Text(collection), id: try row.bytes("id"))
  }

  /// Deleted ones need no row.
  private mutating func judge(missing document: FoldedDocument) throws {
    guard document.row.isAlive else { return }
    guard !isBehind, !outcome.doubtful.holds(document.key) else { return behind += 1 }
    throw LedgerFinding(
      .documents,
      [
        .bytes(partition.digest.bytes), .bytes(Array(document.key.collection.string.utf8)), .bytes(document.key.id),
      ], "the document is missing: runs of the ledger make it")
  }

  private mutating func judge(_ row: LedgerRow, _ document: FoldedDocument?) throws {
    guard let difference = try difference(row, document) else { return }
    try expectDotsThere(row)
    let isUnsure = try row.bytes("unsure") == Array("t".utf8)
    let isOnItsWay = outcome.doubtful.holds(try DocumentComparison.key(of: row))
    guard isBehind || isUnsure || isOnItsWay else { throw row.finding(difference) }
    behind += 1
  }

  /// Nil: it is what the runs make of it.
  private func difference(_ row: LedgerRow, _ document: FoldedDocument?) throws -> String? {
    let isAlive = try row.bytes("alive") == Array("t".utf8)
    guard let document, document.row.isAlive else {
      guard !isAlive else { return "no run of the ledger makes this document, or one deletes it" }
      // What of a deleted one is there may be of a life that counts no more.
      try expectDotsThere(row)
      return try row.optionalBytes("body") == nil ? nil : "a deleted document has a body"
    }
    let state = try DocumentState(stored: document.row)
    guard isAlive else { return "the document is not deleted: runs of the ledger make it" }
    guard try row.bytes("state") == document.row.state else { return "state is not what the runs make of the document" }
    guard try row.number("generation") == state.generation else {
      return "generation is not what the runs make of the document"
    }
    guard DocumentComparison.shows(try row.optionalBytes("id_json"), Value(canonicalID: document.key.id)) else {
      return "id_json is not the document's id"
    }
    // A dead letter has a reason in the place of its body.
    if try row.optionalBytes("refusal") != nil {
      return try row.optionalBytes("body") == nil ? nil : "a dead letter has a body"
    }
    return DocumentComparison.shows(try row.optionalBytes("body"), state.shown().map { .map($0) })
      ? nil : "body is not what the runs make of the document"
  }

  /// Relays write documents in one transaction with the runs that they stand on, or behind them.
  private func expectDotsThere(_ row: LedgerRow) throws {
    let state = try row.bytes("state")
    guard !state.isEmpty else { return }
    let groups: [OperationGroup]
    do throws(CBORError) { groups = try DocumentStateCodec.decode(state[...]).groups } catch {
      throw row.finding("state does not read")
    }
    for dot in groups.map(\.dot) where dot.sequence > outcome.highest[dot.replica] ?? 0 {
      throw row.finding(
        "it stands on change \(dot.sequence) of replica \(hexadecimal(dot.replica.bytes)), which the ledger has not")
    }
  }

  /// Whether JSON that went through the database shows a value; null: one with U+0000.
  private static func shows(_ json: [UInt8]?, _ value: Value?) -> Bool {
    guard let json else { return value?.holdsNull ?? true }
    guard let value, let shown = parsed(json), let expected = parsed(Array(ExtendedJSON.text(value).utf8)) else {
      return false
    }
    return OfficeBody.looksEqual(shown, expected)
  }

  private static func parsed(_ json: [UInt8]) -> Value? { try? ExtendedJSON.parse(json, limits: .ofDatabase) }
}

struct FoldedDocument {
  let key: DocumentKey
  let row: DocumentRow
}

/// Documents of one partition of a store, deleted ones too, in the order in which the table has them.
struct FoldedDocuments {
  private let store: Store
  private let partition: PartitionNumber?
  private var collections: ArraySlice<(name: Text, number: CollectionNumber)> = []
  private var page: ArraySlice<DocumentRow> = []
  private var last: [UInt8]?

  private static let pageRows = 512
  private static let pageBytes = 1024 * 1024

  init(_ store: Store, _ partition: PartitionID) throws {
    self.store = store
    self.partition = try store.partitionNumber(partition)
    guard let number = self.partition else { return }
    collections = try store.collections(of: number).filter { !$0.name.holdsNull }[...]
  }

  mutating func next() throws -> FoldedDocument? {
    guard let partition else { return nil }
    while let collection = collections.first {
      if page.isEmpty {
        page = try store.documents(
          partition, collection.number, after: last, limit: FoldedDocuments.pageRows,
          byteLimit: FoldedDocuments.pageBytes, withDeleted: true)[...]
        last = page.last?.key
      }
      if let row = page.popFirst() {
        return FoldedDocument(key: DocumentKey(collection: collection.name, id: row.key), row: row)
      }
      (last, collections) = (nil, collections.dropFirst())
    }
    return nil
  }
}
