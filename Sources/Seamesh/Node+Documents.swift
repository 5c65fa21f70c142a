import Engine
import Identity
import Replication
import Storage
import Synchronization
import Wire

extension Node {
  package func read(
    _ partition: PartitionName, _ collection: Text, id: Value
  ) throws(NodeError) -> StoredDocument? {
    try reading { reader in
      guard let place = try self.place(partition, collection, reader),
        let row = try reader.document(place.partition, place.collection, key: id.canonicalBytes), row.isAlive
      else { return nil }
      return try StoredDocument(row)
    }
  }

  package func write(_ partition: PartitionName, _ requests: [DocumentRequest]) throws(NodeError) -> WriteReceipt {
    try submit([(partition, requests)])[0].get()
  }

  package func writeEach(
    _ partition: PartitionName, _ requests: [DocumentRequest]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard requests.count <= BulkLimit.requests else {
      throw NodeError(.tooLarge, "at most \(BulkLimit.requests) documents at once, these are \(requests.count)")
    }
    return try submit(requests.map { (partition, [$0]) })
  }

  /// One document each in many partitions, with as few commits as there can be.
  package func writeEach(
    _ requests: [(PartitionName, DocumentRequest)]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard requests.count <= BulkLimit.requests else {
      throw NodeError(.tooLarge, "at most \(BulkLimit.requests) documents at once, these are \(requests.count)")
    }
    return try submit(requests.map { ($0.0, [$0.1]) })
  }

  private func submit(
    _ changes: [(PartitionName, [DocumentRequest])]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    guard !isStopping else { throw NodeError(.stopping, "the node is stopping") }
    for (partition, _) in changes where !partition.takesDocuments {
      throw NodeError(.unprocessable, "a partition's name does not end in *, which stands for a prefix")
    }
    let replies = changes.map { partition, requests in
      let reply = Reply<Result<WriteReceipt, NodeError>>()
      let job = LocalWriteJob(partition: partition, edits: requests) { result in
        reply.fulfil(result.map(WriteReceipt.init).mapError(NodeError.init(any:)))
      }
      if inbox.put(.event(.write(job))) == nil {
        reply.fulfil(.failure(NodeError(.stopping, "the node is stopping")))
      }
      return reply
    }
    return replies.map { $0.wait() }
  }

  package func find(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> [StoredDocument] {
    let query = try DocumentQuery(request)
    return try reading { reader in
      var collector = ResultCollector(query)
      try self.visit(partition, collection, reader) { document in
        collector.offer(document)
        return true
      }
      return collector.finish()
    }
  }

  package func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError) {
    // A page at a time, each a snapshot of its own: a client that reads slowly must not hold back the log (S2).
    let collections = try reading { reader in
      guard let number = try self.number(partition, reader) else { return [Text]() }
      return try reader.collections(of: number).map(\.name).filter { collection == nil || $0 == collection }
    }
    for name in collections {
      var last: [UInt8]?
      while true {
        let from = last
        let rows = try reading { reader -> [DocumentRow] in
          guard let place = try self.place(partition, name, reader) else { return [] }
          return try reader.documents(
            place.partition, place.collection, after: from, limit: Node.pageRows, byteLimit: Node.pageBytes)
        }
        guard let end = rows.last else { break }
        for row in rows {
          let document = try reading { _ in try StoredDocument(row) }
          guard visit(name, document) else { return }
        }
        last = end.key
      }
    }
  }

  // MARK: Reading

  static let pageRows = 500
  static let pageBytes = 4 * 1024 * 1024

  func reading<Answer>(_ body: (StoreReader) throws -> Answer) throws(NodeError) -> Answer {
    do { return try readers.read(body) } catch { throw NodeError(any: error) }
  }

  func number(_ partition: PartitionName, _ reader: StoreReader) throws(StoreError) -> PartitionNumber? {
    try reader.partitionNumber(partition.id(fleet: files.fleet, hash: SHA256.hash))
  }

  func place(
    _ partition: PartitionName, _ collection: Text, _ reader: StoreReader
  ) throws(StoreError) -> StoredPlace? {
    guard let number = try number(partition, reader), let collection = try reader.collectionNumber(collection) else {
      return nil
    }
    return StoredPlace(partition: number, collection: collection)
  }

  /// Where the documents of one collection of one partition lie.
  struct StoredPlace {
    let partition: PartitionNumber
    let collection: CollectionNumber
  }

  /// Living documents in key order, until `body` answers false.
  func visit(
    _ partition: PartitionName, _ collection: Text, _ reader: StoreReader, _ body: (StoredDocument) -> Bool
  ) throws {
    guard let place = try place(partition, collection, reader) else { return }
    var last: [UInt8]?
    while true {
      let rows = try reader.documents(
        place.partition, place.collection, after: last, limit: Node.pageRows, byteLimit: Node.pageBytes)
      guard let end = rows.last else { return }
      for row in rows { guard body(try StoredDocument(row)) else { return } }
      last = end.key
    }
  }

  // MARK: Digests

  /// SHA-256 over the living documents in key order, each as canonical CBOR `[collection, id, body]`.
  func stateDigest(_ number: PartitionNumber, _ vector: VersionVector) throws(NodeError) -> String {
    if let known = digests.withLock({ $0[number] }), known.vector == vector { return known.digest }
    let digest = try reading { reader in
      var stream = SHA256Stream()
      for (name, collection) in try reader.collections(of: number) {
        var last: [UInt8]?
        while true {
          let rows = try reader.documents(
            number, collection, after: last, limit: Node.pageRows, byteLimit: Node.pageBytes)
          guard let end = rows.last else { break }
          for row in rows { stream.update(try Node.digestInput(name, try StoredDocument(row))) }
          last = end.key
        }
      }
      return Hex.encode(stream.finish().bytes)
    }
    digests.withLock { $0[number] = (vector, digest) }
    return digest
  }

  private static func digestInput(_ collection: Text, _ document: StoredDocument) throws -> [UInt8] {
    var writer = CBORWriter(reserving: 512)
    writer.arrayHeader(3)
    writer.text(collection)
    writer.value(document.id)
    writer.value(.map(document.body))
    return writer.bytes
  }
}

extension StoredDocument {
  init(_ row: DocumentRow) throws {
    guard let id = Value(canonicalID: row.key), let body = try DocumentState(stored: row).shown() else {
      throw StoreError.damaged("a document's key or state does not read")
    }
    self.init(id: id, body: body, etag: DocumentETag.of(row.state, SHA256.hash))
  }
}
