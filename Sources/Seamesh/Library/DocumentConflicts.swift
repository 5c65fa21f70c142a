import Replication
import Wire

/// A place of a document where more than what is shown was written, by people who had not seen one another's.
public struct DocumentConflict: Sendable, Equatable, Identifiable {
  /// Names it in this version of the document, and in no other.
  public let id: String
  public let collection: String
  public let document: Document.ID
  /// Something was written that who deleted the document had not seen.
  public let isDeleted: Bool
  /// Keys with dots between, `[]` for an element of a list, `{}` for a member of a set; empty: the whole document.
  public let place: String
  /// Extended JSON; nil where nothing is shown there.
  public let shown: String?
  /// What is not shown.
  public let values: [Candidate]

  public struct Candidate: Sendable, Equatable {
    public let path: String
    /// `set`, `remove`, `increment` or `add`.
    public let kind: String
    /// Extended JSON; nil for `remove`.
    public let json: String?
    public let user: String
    public let device: String
  }

  /// What is decided about a conflict.
  public enum Choice: Sendable, Equatable {
    /// What is shown.
    case keep
    /// Values of the conflict, by their places in it from 1 on; where they exclude one another the last stands.
    case take([Int])
    /// Another value at its place, as Extended JSON.
    case value(String)
  }

  /// Some conflicts of a partition, and from where to go on.
  public struct Page: Sendable, Equatable {
    public let conflicts: [DocumentConflict]
    /// Nil: everything was looked at.
    public let next: String?
  }
}

extension Node {
  /// Documents of a partition, living and deleted, with conflicts. Looks at some thousand of them at most: a page without any may
  /// have a `next`, with which to ask again.
  public func conflicts(
    in partition: String, after cursor: String? = nil, limit: Int = 100
  ) async throws(NodeError) -> DocumentConflict.Page {
    let name = try self.partition(named: partition)
    return try await Blocking.run { () throws(NodeError) in
      let page = try self.conflicts(name, ConflictQuery(after: cursor, limit: limit))
      return DocumentConflict.Page(conflicts: page.conflicts.map(DocumentConflict.init), next: page.next)
    }
  }

  /// Decides a conflict, in a change that has seen what the page showed. Throws ``NodeError/Code/preconditionFailed`` where the
  /// document has changed since: nothing is replaced unread.
  public func resolve(
    _ conflict: DocumentConflict.ID, in partition: String, _ choice: DocumentConflict.Choice
  ) async throws(NodeError) {
    let name = try self.partition(named: partition)
    let choice: ConflictChoice =
      switch choice {
      case .keep: .keep
      case .take(let numbers): .take(numbers)
      case .value(let json): .value(try parsed { () throws(JSONError) in try ExtendedJSON.parse(Array(json.utf8)) })
      }
    try await Blocking.run { () throws(NodeError) in _ = try self.resolve(name, conflict: conflict, choice) }
  }
}

extension DocumentConflict {
  fileprivate init(_ status: ConflictStatus) {
    (id, collection, document) = (status.id, status.collection, Document.ID(status.document))
    (isDeleted, place) = (status.isDeleted, status.place)
    shown = status.shown.map { ExtendedJSON.text($0) }
    values = status.values.map {
      Candidate(
        path: $0.path, kind: $0.kind, json: $0.value.map { ExtendedJSON.text($0) }, user: $0.writer.user,
        device: $0.writer.device)
    }
  }
}
