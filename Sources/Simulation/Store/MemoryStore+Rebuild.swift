import Engine
import Replication
import Storage
import Wire

extension MemoryStore {
  package func rebuild(_ documents: Set<DocumentKey>, by rebuilding: Rebuilding) throws -> ChangedDocuments {
    let number = makePartition(rebuilding.partition)
    let wanted = Set(documents.map { $0.hash(in: rebuilding.partition, rebuilding.hash) })
    var writes: [DocumentKey: [AcceptedWrite]] = [:]
    let chains = (image.partitions[number]?.chains ?? [:]).sorted { $0.key < $1.key }
    for (_, chain) in chains {
      try visit(image.chains[chain], wanted, rebuilding) { write in
        let key = DocumentKey(collection: write.write.collection, id: write.write.id)
        if documents.contains(key) { writes[key, default: []].append(write) }
      }
    }
    let sorted = documents.sorted()
    for key in sorted { restore(key, writes[key] ?? [], in: number) }
    return changed(sorted, in: rebuilding.partition)
  }

  private func restore(_ key: DocumentKey, _ writes: [AcceptedWrite], in partition: Int) {
    let present = image.partitions[partition]?.documents[key]
    if writes.isEmpty, present == nil { return }
    let document =
      writes.isEmpty
      ? nil : MemoryDocument(row: present?.row ?? makeRow(), state: DocumentState.merged(of: writes))
    put(document, at: key, in: partition, wasAlive: present?.isAlive ?? false)
  }

  private func changed(_ sorted: [DocumentKey], in partition: PartitionID) -> ChangedDocuments {
    var (keys, places): ([UInt8], [ChangedDocuments.Place]) = ([], [])
    var items: [(place: Int, key: Range<Int>)] = []
    for key in sorted {
      if places.last?.collection != key.collection {
        places.append(ChangedDocuments.Place(partition: partition, collection: key.collection))
      }
      items.append((places.count - 1, keys.count..<keys.count + key.id.count))
      keys += key.id
    }
    return ChangedDocuments(keys: keys, places: places, items: items)
  }

  /// The writes of one chain's accepted changes, on whatever branch, that have an effect and may be of wanted documents.
  private func visit(
    _ chain: MemoryChain, _ wanted: Set<KeyHash>, _ rebuilding: Rebuilding, _ body: (AcceptedWrite) -> Void
  ) throws(StoreError) {
    let last = rebuilding.accepted.sequence(of: chain.replica)
    let end = chain.runs.last?.record.last ?? 0
    guard last <= end else {
      throw .damaged("the log ends at change \(end) of a chain that is accepted up to \(last)")
    }
    for run in chain.runs where run.record.first <= last {
      let decoded = try run.decode(of: rebuilding.partition, in: rebuilding.fleet, rebuilding.formats, rebuilding.hash)
      for (index, change) in decoded.changes.enumerated() where change.header.sequence <= last {
        guard change.header.keyHashes.contains(where: wanted.contains),
          let context = rebuilding.context(chain.replica, change.header, decoded.hashes[index], run.record.context)
        else { continue }
        let (views, payload) = try documents(of: change, decoded.contents[index], context, rebuilding)
        for view in views { body(try AcceptedWrite(decoding: view, in: payload, context)) }
      }
    }
  }

  private func documents(
    of change: Change, _ content: DecodedRun.Content, _ context: WriteContext, _ rebuilding: Rebuilding
  ) throws(StoreError) -> ([DocumentWriteView], ArraySlice<UInt8>) {
    switch content {
    case .documents(let scan): return (scan.documents, change.payload)
    case .held, .absent: throw .damaged("change \(context.dot.sequence) counts, but is not understood")
    case .apart:
      guard let payload = image.largePayloads[change.header.payloadHash] else {
        throw .damaged("change \(context.dot.sequence) counts, but its payload is not there")
      }
      do throws(RunError) {
        let scan = try RunCodec.scanApart(
          payload[...], of: change.header, at: context.dot, partition: rebuilding.partition, hash: rebuilding.hash)
        return (scan.documents, payload[...])
      } catch {
        throw .damaged("payload of change \(context.dot.sequence): \(error)")
      }
    }
  }
}
