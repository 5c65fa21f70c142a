import Engine
import Replication
import Storage
import Wire

extension MemoryStore {
  package func store(
    _ new: LogDocument, over old: LogDocument?, as key: DocumentKey, in partition: PartitionID
  ) throws {
    let number = makePartition(partition)
    if let old, let row = old.row {
      put(
        MemoryDocument(row: row, isAlive: new.isAlive, bytes: new.state), at: key, in: number, wasAlive: old.isAlive)
      return
    }
    guard image.partitions[number]?.documents[key] == nil else {
      throw StoreError.damaged("a document is there that was not found")
    }
    put(MemoryDocument(row: makeRow(), isAlive: new.isAlive, bytes: new.state), at: key, in: number, wasAlive: false)
  }

  func makeRow() -> Int64 {
    image.lastRow += 1
    return image.lastRow
  }

  /// Nil takes the document away as if it had never been.
  func put(_ document: MemoryDocument?, at key: DocumentKey, in partition: Int, wasAlive: Bool) {
    let old = image.partitions[partition]?.documents[key]
    image.partitions[partition]?.documents[key] = document
    onFailure { $0.partitions[partition]?.documents[key] = old }
    let change: Int64 = (document?.isAlive ?? false ? 1 : 0) - (wasAlive ? 1 : 0)
    if change != 0 { count(MemoryTotals(documents: change), in: partition) }
  }

  package func fold(_ runs: [AcceptedRun]) throws -> ChangedDocuments {
    var batch = MemoryFold()
    for run in runs { try batch.append(run, partition: makePartition(run.partition)) }
    batch.sort()
    var start = 0
    while start < batch.items.count {
      let end = batch.endOfDocument(from: start)
      try fold(batch.items[start..<end], of: runs)
      start = end
    }
    return batch.changed
  }

  /// Writes of one document, in order of delivery.
  private func fold(_ items: ArraySlice<MemoryFold.Item>, of runs: [AcceptedRun]) throws(StoreError) {
    guard let first = items.first else { return }
    let present = image.partitions[first.partition]?.documents[first.key]
    if present == nil, items.count == 1, first.write.view.kind == .create, runs[first.run].sight.kin.isEmpty {
      return put(created(first, by: runs[first.run]), at: first.key, in: first.partition, wasAlive: false)
    }
    var state = try present?.decoded() ?? DocumentState()
    for item in items { state.apply(try item.decode(from: runs[item.run])) }
    put(
      MemoryDocument(row: present?.row ?? makeRow(), state: state), at: first.key, in: first.partition,
      wasAlive: present?.isAlive ?? false)
  }

  /// Stored as its payload has it, like the real store does: what leaves no entry is still there.
  private func created(_ item: MemoryFold.Item, by run: AcceptedRun) -> MemoryDocument {
    var writer = CBORWriter(reserving: item.write.view.operations.count + MemoryFold.stateOverhead)
    writer.createdState(
      dot: Dot(replica: run.replica, sequence: item.write.sequence), timestamp: item.write.timestamp,
      generation: item.write.view.generation, operations: run.documents.buffer[item.write.view.operations])
    return MemoryDocument(row: makeRow(), isAlive: true, bytes: writer.bytes)
  }
}

/// The writes of several runs by document: places in the order in which they come up, ids in byte order, then in order of
/// delivery.
struct MemoryFold {
  /// What a new state has around its operations, at most.
  static let stateOverhead = 64

  struct Item {
    let place: Int
    let partition: Int
    let key: DocumentKey
    let idRange: Range<Int>
    /// Index into the runs.
    let run: Int
    let write: PlacedWrite

    func decode(from run: AcceptedRun) throws(StoreError) -> AcceptedWrite {
      let context = WriteContext(
        dot: Dot(replica: run.replica, sequence: write.sequence), timestamp: write.timestamp, context: run.context,
        sight: run.sight)
      return try AcceptedWrite(decoding: write.view, in: run.documents.buffer, context)
    }
  }

  private(set) var items: [Item] = []
  private var keys: [UInt8] = []
  private var places: [ChangedDocuments.Place] = []
  private var placeIndex: [ChangedDocuments.Place: Int] = [:]
  private var runCount = 0

  mutating func append(_ run: AcceptedRun, partition: Int) throws(StoreError) {
    for write in run.documents.writes {
      let start = keys.count
      do throws(PayloadError) { try write.view.appendCanonicalID(in: run.documents.buffer, to: &keys) } catch {
        throw .damaged("payload of change \(write.sequence): \(error)")
      }
      let key = DocumentKey(collection: write.view.collection(in: run.documents.buffer), id: Array(keys[start...]))
      items.append(
        Item(
          place: place(ChangedDocuments.Place(partition: run.partition, collection: key.collection)),
          partition: partition, key: key, idRange: start..<keys.count, run: runCount, write: write))
    }
    runCount += 1
  }

  private mutating func place(_ place: ChangedDocuments.Place) -> Int {
    if let last = items.last, places[last.place] == place { return last.place }
    if let known = placeIndex[place] { return known }
    places.append(place)
    placeIndex[place] = places.count - 1
    return places.count - 1
  }

  mutating func sort() {
    guard items.count > 1 else { return }
    let order = items.indices.sorted { a, b in
      if items[a].place != items[b].place { return items[a].place < items[b].place }
      if items[a].key.id == items[b].key.id { return a < b }
      return items[a].key.id.lexicographicallyPrecedes(items[b].key.id)
    }
    items = order.map { items[$0] }
  }

  func endOfDocument(from start: Int) -> Int {
    var end = start + 1
    while end < items.count, items[end].place == items[start].place, items[end].key.id == items[start].key.id {
      end += 1
    }
    return end
  }

  /// Each document once.
  var changed: ChangedDocuments {
    var found: [(place: Int, key: Range<Int>)] = []
    var start = 0
    while start < items.count {
      found.append((items[start].place, items[start].idRange))
      start = endOfDocument(from: start)
    }
    return ChangedDocuments(keys: keys, places: places, items: found)
  }
}

extension AcceptedWrite {
  /// What lies in `buffer` at `view`.
  init(
    decoding view: DocumentWriteView, in buffer: ArraySlice<UInt8>, _ context: WriteContext
  ) throws(StoreError) {
    do throws(PayloadError) {
      let operations = try PayloadDecoder.decodeOperations(buffer[view.operations], dot: context.dot)
      self.init(
        context,
        DocumentWrite(
          collection: view.collection(in: buffer), id: try view.id(in: buffer), kind: view.kind,
          generation: view.generation, operations: operations))
    } catch {
      throw .damaged("payload of change \(context.dot.sequence): \(error)")
    }
  }
}
