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

extension DocumentReader {
  /// Decodes a row. One that does not read is made anew from the log first, if that has it, and with it those beside it: each
  /// costs a walk through the log, however many they are.
  func content(
    of row: DocumentRow, _ partition: PartitionName, _ collection: Text, beside others: ArraySlice<DocumentRow> = []
  ) throws(NodeError) -> RowContent {
    if let state = DocumentReader.intact(row) { return .state(row, state) }
    let damaged = [row] + others.filter { DocumentReader.intact($0) == nil }
    try mend(Set(damaged.map { DocumentKey(collection: collection, id: $0.key) }), in: partition)
    guard let again = try self.row(of: row.key, partition, collection) else { return .gone }
    if let state = DocumentReader.intact(again) { return .state(again, state) }
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
    let id = id(of: partition)
    return try engine.ask { $0.mend(keys, in: id) }
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

  /// Whoever may see it.
  func stored(_ partition: PartitionName, _ collection: Text, id: Value) throws(NodeError) -> StoredDocument? {
    guard let row = try row(of: id.canonicalBytes, partition, collection) else { return nil }
    return try shown(row, partition, collection) { id throws(NodeError) in throw DocumentReader.refusal(ofDamaged: id) }
  }

  /// The merge state, also of a document that was deleted; nil where there never was one.
  func state(
    of collection: Text, id: Value, in partition: PartitionName
  ) throws(NodeError) -> DocumentState? {
    guard let row = try row(of: id.canonicalBytes, partition, collection) else { return nil }
    switch try content(of: row, partition, collection) {
    case .state(_, let state): return state
    case .gone: return nil
    case .damaged(let id): throw DocumentReader.refusal(ofDamaged: id)
    }
  }
}

extension StoredDocument {
  /// Nil where it is not alive.
  init?(_ row: DocumentRow, _ state: DocumentState) {
    guard let id = Value(canonicalID: row.key), let body = state.shown() else { return nil }
    self.init(id: id, body: body, etag: DocumentETag.of(row.state, SHA256.hash))
  }
}
