import Engine
import Identity
import Replication
import Storage

extension Node {
  package func read(
    _ partition: PartitionName, _ collection: Text, id: Value
  ) throws(NodeError) -> StoredDocument? {
    try checkMayShow(partition)
    return try stored(partition, collection, id: id)
  }

  /// Whoever may see it.
  func stored(_ partition: PartitionName, _ collection: Text, id: Value) throws(NodeError) -> StoredDocument? {
    guard let row = try row(of: id.canonicalBytes, partition, collection) else { return nil }
    return try shown(row, partition, collection) { id throws(NodeError) in throw Node.refusal(ofDamaged: id) }
  }

  package func write(_ partition: PartitionName, _ requests: [DocumentRequest]) throws(NodeError) -> WriteReceipt {
    try submit([(partition, requests)])[0].get()
  }

  package func writeEach(
    _ partition: PartitionName, _ requests: [DocumentRequest]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard requests.count <= BulkLimit.requests else {
      throw NodeError(
        .tooLarge, "at most \(BulkLimit.requests) documents at once, these are \(requests.count)",
        limit: .init(BulkLimit.requests, "documents"))
    }
    return try submit(requests.map { (partition, [$0]) })
  }

  /// One document each in many partitions, with as few commits as there can be.
  package func writeEach(
    _ requests: [(PartitionName, DocumentRequest)]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard requests.count <= BulkLimit.requests else {
      throw NodeError(
        .tooLarge, "at most \(BulkLimit.requests) documents at once, these are \(requests.count)",
        limit: .init(BulkLimit.requests, "documents"))
    }
    return try submit(requests.map { ($0.0, [$0.1]) })
  }

  /// As ``write(_:_:)``, of somebody who read the document elsewhere: his change has seen nothing that came since.
  package func write(
    _ partition: PartitionName, _ request: DocumentRequest, reading: EarlierReading
  ) throws(NodeError) -> WriteReceipt {
    try submit([(partition, [request])], reading: reading)[0].get()
  }

  /// The merge state, also of a document that was deleted; nil where there never was one.
  package func state(
    of collection: Text, id: Value, in partition: PartitionName
  ) throws(NodeError) -> DocumentState? {
    guard let row = try row(of: id.canonicalBytes, partition, collection) else { return nil }
    switch try content(of: row, partition, collection) {
    case .state(_, let state): return state
    case .gone: return nil
    case .damaged(let id): throw Node.refusal(ofDamaged: id)
    }
  }

  func submit(
    _ changes: [(PartitionName, [any DocumentEdit])], reading: EarlierReading? = nil
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard !isStopping else { throw NodeError(.stopping, "the node is stopping") }
    for (partition, _) in changes where !partition.takesDocuments {
      throw NodeError(.unprocessable, "a partition's name does not end in *, which stands for a prefix")
    }
    let replies = changes.map { partition, requests in
      let reply = Reply<Result<WriteReceipt, NodeError>>()
      let job = LocalWriteJob(partition: partition, edits: requests, reading: reading) { result in
        reply.fulfil(result.map(WriteReceipt.init).mapError(NodeError.init(any:)))
      }
      if !inbox.put(.event(.write(job))) {
        reply.fulfil(.failure(NodeError(.stopping, "the node is stopping")))
      }
      return reply
    }
    var results: [Result<WriteReceipt, NodeError>] = []
    // Who writes for somebody elsewhere must know whether it was done, however long that takes.
    for reply in replies { results.append(try answer(of: reply, isPatient: reading != nil)) }
    return results
  }

  package func find(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> FoundDocuments {
    try checkMayShow(partition)
    return try result(of: DocumentQuery(request), partition, collection)
  }

  package func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError) {
    try checkMayShow(partition)
    let collections = try reading { reader in
      guard let number = try self.number(partition, reader) else { return [Text]() }
      return try reader.collections(of: number).map(\.name).filter { collection == nil || $0 == collection }
    }
    for name in collections {
      var pass = DocumentPass(self, partition, name)
      let goesOn = try pass.eachPage { rows throws(NodeError) in
        try checkMayShow(partition)
        for (index, row) in rows.enumerated() {
          let document = try shown(row, partition, name, beside: rows[(index + 1)...]) { _ in }
          if let document, !visit(name, document) { return false }
        }
        return true
      }
      guard goesOn else { return }
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

extension Node {
  /// From a hash over device, partition, collection and key: nobody else's key leads to the same document.
  package func objectID(forKey key: Text, in partition: PartitionName, _ collection: Text) -> ObjectID {
    let parts = [device.digest.bytes, Array(partition.text.utf8), Array(collection.utf8), Array(key.utf8)]
    let (high, low, _, _) = SHA256.hash(parts.flatMap { SHA256.hash($0).bytes }).words
    return ObjectID(high: high, low: UInt32(truncatingIfNeeded: low >> 32))
  }
}
