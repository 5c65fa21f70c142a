import Replication
import Wire

/// The writes of a batch by the place of their documents: writes of one document stand together, in order of delivery.
struct FoldBatch {
  struct Scope: Hashable {
    let partition: PartitionNumber
    let collection: CollectionNumber
  }

  /// One write. Kept small: sorting moves these.
  struct Item {
    /// The key's first eight bytes, big-endian: nearly every comparison ends here.
    let prefix: UInt64
    let scope: UInt32
    let keyStart: UInt32
    let keyCount: UInt32
    /// Index into the batch's writes: the order of delivery.
    let write: UInt32
    let source: UInt32

    var keyRange: Range<Int> { Int(keyStart)..<Int(keyStart) + Int(keyCount) }
  }

  /// Canonical ids, one after the other.
  private(set) var keys: [UInt8] = []
  private(set) var items: [Item] = []
  private(set) var scopes: [Scope] = []
  private var scopeIndex: [Scope: UInt32] = [:]
  /// The collection of the write before, as it stands in its payload: usually that of the next one.
  private var lastName: [UInt8] = []
  private var lastScope: UInt32?

  init(_ batch: AcceptedBatch, in transaction: borrowing Transaction) throws(StoreError) {
    items.reserveCapacity(batch.writes.count)
    keys.reserveCapacity(batch.writes.count * 24)
    var start = 0
    for (index, source) in batch.sources.enumerated() {
      for write in start..<source.end { try add(batch.writes[write], write, source, index, transaction) }
      start = source.end
    }
    if !isSorted { sort() }
  }

  private mutating func add(
    _ write: PlacedWrite, _ index: Int, _ source: AcceptedBatch.Source, _ sourceIndex: Int,
    _ transaction: borrowing Transaction
  ) throws(StoreError) {
    let scope = try scope(of: write.view, source, transaction)
    let start = keys.count
    do throws(PayloadError) { try write.view.appendCanonicalID(in: source.buffer, to: &keys) } catch {
      throw .damaged("payload of change \(write.sequence): \(error)")
    }
    items.append(
      Item(
        prefix: prefix(from: start), scope: scope, keyStart: UInt32(start), keyCount: UInt32(keys.count - start),
        write: UInt32(index), source: UInt32(sourceIndex)))
  }

  /// Shorter keys are filled up with zeros; equal prefixes are told apart by the whole keys.
  private func prefix(from start: Int) -> UInt64 {
    var prefix: UInt64 = 0
    for index in start..<start + 8 { prefix = prefix << 8 | (index < keys.count ? UInt64(keys[index]) : 0) }
    return prefix
  }

  private mutating func scope(
    of view: DocumentWriteView, _ source: AcceptedBatch.Source, _ transaction: borrowing Transaction
  ) throws(StoreError) -> UInt32 {
    let name = source.buffer[view.collection]
    if let lastScope, scopes[Int(lastScope)].partition == source.partition, name.elementsEqual(lastName) {
      return lastScope
    }
    let scope = Scope(
      partition: source.partition,
      collection: try transaction.number(ofCollection: view.collection(in: source.buffer)))
    let index = scopeIndex[scope] ?? UInt32(scopes.count)
    if index == scopes.count {
      scopes.append(scope)
      scopeIndex[scope] = index
    }
    (lastName, lastScope) = (Array(name), index)
    return index
  }

  /// Index behind the last write of the document whose first write is at `start`.
  func endOfDocument(from start: Int) -> Int {
    var end = start + 1
    while end < items.count, isSameDocument(items[start], items[end]) { end += 1 }
    return end
  }

  private func isSameDocument(_ a: Item, _ b: Item) -> Bool {
    a.prefix == b.prefix && a.scope == b.scope && keys[a.keyRange] == keys[b.keyRange]
  }

  /// New documents with ascending ids need no sorting.
  private var isSorted: Bool {
    keys.withUnsafeBytes { keys in
      for index in items.indices.dropFirst() where !FoldBatch.stands(items[index - 1], before: items[index], keys) {
        return false
      }
      return true
    }
  }

  private mutating func sort() {
    let keys = self.keys
    keys.withUnsafeBytes { keys in items.sort { FoldBatch.stands($0, before: $1, keys) } }
  }

  private static func stands(_ a: Item, before b: Item, _ keys: UnsafeRawBufferPointer) -> Bool {
    if a.scope != b.scope { return a.scope < b.scope }
    if a.prefix != b.prefix { return a.prefix < b.prefix }
    let (left, right) = (keys[a.keyRange], keys[b.keyRange])
    if left.elementsEqual(right) { return a.write < b.write }
    return left.lexicographicallyPrecedes(right)
  }
}
