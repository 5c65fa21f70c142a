import Engine
import Replication

extension Node {
  package func read(
    _ partition: PartitionName, _ collection: Text, id: Value
  ) throws(NodeError) -> StoredDocument? {
    try documents.checkMayShow(partition)
    return try documents.stored(partition, collection, id: id)
  }

  package func find(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> FoundDocuments {
    try documents.find(partition, collection, request)
  }

  /// The merge state, also of a document that was deleted; nil where there never was one.
  package func state(
    of collection: Text, id: Value, in partition: PartitionName
  ) throws(NodeError) -> DocumentState? {
    try documents.state(of: collection, id: id, in: partition)
  }

  package func export(
    _ partition: PartitionName, collection: Text?, visit: (Text, StoredDocument) -> Bool
  ) throws(NodeError) {
    try documents.export(partition, collection: collection, visit: visit)
  }

  package func watch(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> any WatchSubscription {
    try live(partition, collection, request)
  }

  func live(
    _ partition: PartitionName, _ collection: Text, _ request: FindRequest
  ) throws(NodeError) -> any LiveSubscription {
    try LiveResult(partition, collection, request, documents, feed, liveMemory.part(), for: self)
  }

  package func conflicts(_ partition: PartitionName, _ query: ConflictQuery) throws(NodeError) -> ConflictPage {
    try ConflictSearch.page(of: partition, query, documents, authority.now)
  }

  package func damaged() throws(NodeError) -> [DamagedStatus] { try engine.ask { $0.damagedDocuments() } }

  // MARK: Writing

  package func write(_ partition: PartitionName, _ requests: [DocumentRequest]) throws(NodeError) -> WriteReceipt {
    guard requests.count > 1 else { return try engine.submit([(partition, requests)])[0].get() }
    let numbered = requests.enumerated().map { NumberedRequest(request: $1, number: $0 + 1) }
    return try engine.submit([(partition, numbered)])[0].get()
  }

  package func writeEach(
    _ partition: PartitionName, _ requests: [DocumentRequest]
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    try writeEach(requests.map { (partition, $0) })
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
    return try engine.submit(requests.map { ($0.0, [$0.1]) })
  }

  /// As ``write(_:_:)``, of somebody who read the document elsewhere: his change has seen nothing that came since.
  package func write(
    _ partition: PartitionName, _ request: DocumentRequest, reading: EarlierReading
  ) throws(NodeError) -> WriteReceipt {
    try engine.submit([(partition, [request])], reading: reading)[0].get()
  }

  package func resolve(
    _ partition: PartitionName, conflict text: String, _ choice: ConflictChoice
  ) throws(NodeError) -> WriteReceipt {
    try documents.checkMayShow(partition)
    let conflict = try ConflictID(text)
    guard let id = Value(canonicalID: conflict.key.id) else {
      throw NodeError(.notFound, "there is no such conflict; its id is as the list of conflicts has it")
    }
    let edit = ConflictEdit(conflict: conflict, id: id, choice: choice)
    let receipt = try engine.submit([(partition, [edit])])[0].get()
    // Who decided the last one should not be told of it any longer.
    renewDigest(of: partition)
    return receipt
  }
}

extension EngineLine {
  /// Each with its partition.
  func submit(
    _ changes: [(PartitionName, [any DocumentEdit])], reading: EarlierReading? = nil,
    whenEnded: @escaping @Sendable () -> Void = {}
  ) throws(NodeError) -> [Result<WriteReceipt, NodeError>] {
    try checkIsOpen()
    for (partition, _) in changes where !partition.takesDocuments {
      throw NodeError(.unprocessable, "a partition's name does not end in *, which stands for a prefix")
    }
    var jobs: [NodeJob] = []
    let replies = changes.map { partition, requests in
      let reply = Reply<Result<WriteReceipt, NodeError>>()
      guard !partition.lacksValue else {
        let words = "\(partition.text.string) says nothing behind =, so that nobody would know whose this is"
        reply.fulfil(.failure(NodeError(.notPermitted, words)))
        return reply
      }
      let job = LocalWriteJob(partition: partition, edits: requests, reading: reading) { result in
        reply.fulfil(result.map(WriteReceipt.init).mapError { NodeError(any: $0, edits: requests.count) })
        whenEnded()
      }
      jobs.append(.event(.write(job)))
      return reply
    }
    // The engine is awake with the first that it sees, and would commit that alone.
    guard inbox.put(jobs) else { throw EngineLine.stopping }
    var results: [Result<WriteReceipt, NodeError>] = []
    // Who writes for somebody elsewhere must know whether it was done, however long that takes.
    for reply in replies { results.append(try answer(of: reply, isPatient: reading != nil)) }
    return results
  }
}
