import Replication
import Wire

/// One collection of one partition on a running node. Reads and writes are local: they work without any peer.
///
/// Every write returns when it is on this device's disk; peers have it as soon as they are reached. Each method throws
/// ``NodeError``, with one sentence for a person.
public struct DocumentCollection: Sendable {
  let node: Node
  let partition: PartitionName
  let name: Text

  /// Nil where there is no such document.
  public func document(_ id: Document.ID) async throws(NodeError) -> Document? {
    let (node, partition, name, id) = (node, partition, name, try id.value())
    return try await Blocking.run { () throws(NodeError) in
      try node.read(partition, name, id: id).map(Document.init)
    }
  }

  /// Writes a document that must not be there yet, and answers its id: the `_id` of the document, or a new object id.
  @discardableResult
  public func insert(_ json: String) async throws(NodeError) -> Document.ID {
    var body = try body(json)
    let id = body["_id"] ?? .objectID(.make())
    body["_id"] = nil
    try await write(id, .insert(body: body), ifMatch: nil)
    return Document.ID(id)
  }

  /// Replaces or makes a document, which names its `_id`. Only what differs is recorded: fields that others change
  /// meanwhile stay as they made them.
  ///
  /// - Parameters:
  ///   - keepingAbsent: keeps the fields that `json` leaves out; otherwise they are taken away.
  ///   - etag: the version that must stand there now, or ``NodeError/Code/preconditionFailed``.
  public func put(
    _ json: String, keepingAbsent: Bool = false, ifMatch etag: String? = nil
  ) async throws(NodeError) {
    var body = try body(json)
    guard let id = body["_id"] else { throw NodeError(.unprocessable, "the document has no _id") }
    body["_id"] = nil
    try await write(id, .put(body: body, keepAbsent: keepingAbsent), ifMatch: etag)
  }

  /// Changes the fields that `patch` names; null takes one away (JSON Merge Patch, RFC 7396). A patch whose keys begin
  /// with `$` holds MongoDB update operators instead, of which `$set` and `$unset` are there in this version.
  ///
  /// - Parameters:
  ///   - upserting: makes the document where there is none; otherwise ``NodeError/Code/notFound``.
  ///   - etag: the version that must stand there now, or ``NodeError/Code/preconditionFailed``.
  public func patch(
    _ id: Document.ID, _ patch: String, upserting: Bool = false, ifMatch etag: String? = nil
  ) async throws(NodeError) {
    let map = try criteria(patch)
    let operators = map.entries.count { $0.key.utf8.first == UInt8(ascii: "$") }
    guard operators == 0 || operators == map.count else {
      throw NodeError(.badRequest, "a patch has fields, or operators that begin with $, but not both")
    }
    let action: DocumentRequest.Action =
      operators > 0 ? .update(map, upsert: upserting) : .mergePatch(try body(patch), upsert: upserting)
    try await write(try id.value(), action, ifMatch: etag)
  }

  public func delete(_ id: Document.ID, ifMatch etag: String? = nil) async throws(NodeError) {
    try await write(try id.value(), .delete, ifMatch: etag)
  }

  /// Documents that match a MongoDB-style filter, at most `limit`. Throws ``NodeError/Code/tooLarge`` for more than 10,000
  /// where there is no limit, and for what does not fit into memory well.
  /// Documents that do not read on this device are named in ``Documents/damaged``.
  public func find(_ filter: String = "{}", limit: Int? = nil) async throws(NodeError) -> Documents {
    let (node, partition, name) = (node, partition, name)
    let request = FindRequest(filter: try criteria(filter), limit: limit)
    return try await Blocking.run { () throws(NodeError) in
      try Documents(node.find(partition, name, request))
    }
  }

  /// The documents that match, and then what becomes of them: the first event is the whole result, each later one a
  /// difference, whoever made it. Ends when its task is cancelled.
  public func watch(_ filter: String = "{}") throws(NodeError) -> DocumentEvents {
    DocumentEvents(try node.live(partition, name, FindRequest(filter: try criteria(filter))))
  }

  private func write(
    _ id: Value, _ action: DocumentRequest.Action, ifMatch etag: String?
  ) async throws(NodeError) {
    let (node, partition) = (node, partition)
    let request = DocumentRequest(collection: name, id: id, action: action, ifMatch: etag)
    _ = try await Blocking.run { () throws(NodeError) in try node.write(partition, [request]) }
  }

  private func body(_ json: String) throws(NodeError) -> ValueMap {
    try parsed { () throws(JSONError) in try ExtendedJSON.parseMap(Array(json.utf8)) }
  }

  private func criteria(_ filter: String) throws(NodeError) -> ValueMap {
    try parsed { () throws(JSONError) in try ExtendedJSON.parseMap(Array(filter.utf8), operators: .allowed) }
  }
}
