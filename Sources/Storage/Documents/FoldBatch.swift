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
    let scope: UInt32
    /// The key's first eight bytes, big-endian: nearly every comparison ends here.
    let prefix: UInt64
    let keyStart: UInt32
    let keyCount: UInt32
    let change: UInt32
    let document: UInt32

    var keyRange: Range<Int> { Int(keyStart)..<Int(keyStart) + Int(keyCount) }
  }

  /// Canonical ids, one after the other.
  private(set) var keys: [UInt8] = []
  private(set) var items: [Item] = []
  private(set) var scopes: [Scope] = []
  private var scopeIndex: [Scope: UInt32] = [:]
  /// The collection of the write before, as it stands in its payload: usually that of the next one.
  private var lastName: ArraySlice<UInt8> = []
  private var lastScope: UInt32?

  init(_ changes: [AcceptedChange], in transaction: borrowing Transaction) throws(StoreError) {
    let count = changes.reduce(0) { $0 + $1.documents.count }
    items.reserveCapacity(count)
    keys.reserveCapacity(count * 24)
    for (index, change) in changes.enumerated() {
      for place in change.documents.indices { try add(change, UInt32(index), place, transaction) }
    }
    if !isSorted { sort() }
  }

  private mutating func add(
    _ change: AcceptedChange, _ index: UInt32, _ place: Int, _ transaction: borrowing Transaction
  ) throws(StoreError) {
    let view = change.documents[place]
    let scope = try scope(of: change, view, transaction)
    let start = keys.count
    do throws(PayloadError) { try view.appendCanonicalID(in: change.payload, to: &keys) } catch {
      throw .damaged("payload of change \(change.context.dot.sequence): \(error)")
    }
    // Shorter keys are filled up with zeros; equal prefixes are told apart by the whole keys.
    let prefix = keys[start...].prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let missing = max(0, 8 - (keys.count - start))
    items.append(
      Item(
        scope: scope, prefix: prefix << UInt64(missing * 8), keyStart: UInt32(start),
        keyCount: UInt32(keys.count - start), change: index, document: UInt32(place)))
  }

  private mutating func scope(
    of change: AcceptedChange, _ view: DocumentWriteView, _ transaction: borrowing Transaction
  ) throws(StoreError) -> UInt32 {
    let name = change.payload[view.collection]
    if let lastScope, scopes[Int(lastScope)].partition == change.partition, name == lastName { return lastScope }
    let scope = Scope(
      partition: change.partition,
      collection: try transaction.number(ofCollection: view.collection(in: change.payload)))
    let index = scopeIndex[scope] ?? UInt32(scopes.count)
    if index == scopes.count {
      scopes.append(scope)
      scopeIndex[scope] = index
    }
    (lastName, lastScope) = (name, index)
    return index
  }

  /// Index behind the last write of the document whose first write is at `start`.
  func endOfDocument(from start: Int) -> Int {
    var end = start + 1
    while end < items.count, isSameDocument(items[start], items[end]) { end += 1 }
    return end
  }

  private func isSameDocument(_ a: Item, _ b: Item) -> Bool {
    a.scope == b.scope && a.prefix == b.prefix && keys[a.keyRange] == keys[b.keyRange]
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
    if left.elementsEqual(right) { return (a.change, a.document) < (b.change, b.document) }
    return left.lexicographicallyPrecedes(right)
  }
}
