import Replication
import Wire

/// Names a conflict in one version of a document: collection and id in hexadecimal, the version, and which of its decisions.
struct ConflictID: Equatable {
  let key: DocumentKey
  let etag: String
  /// From 1 on.
  let number: Int

  init(key: DocumentKey, etag: String, number: Int) { (self.key, self.etag, self.number) = (key, etag, number) }

  var text: String { "\(key.hexadecimal).\(etag).\(number)" }

  init(_ text: String) throws(NodeError) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 4, let key = DocumentKey(hexadecimal: parts[0...1]), let number = Int(parts[3]), number > 0
    else {
      throw NodeError(.notFound, "there is no such conflict; its id is as the list of conflicts has it")
    }
    self.init(key: key, etag: parts[2], number: number)
  }
}

/// Where a list of conflicts goes on: behind a document.
struct ConflictCursor {
  let key: DocumentKey

  init(_ key: DocumentKey) { self.key = key }

  var text: String { key.hexadecimal }

  init(_ text: String) throws(NodeError) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, let key = DocumentKey(hexadecimal: parts[...]) else {
      throw NodeError(.unprocessable, "the list does not go on there; take what it gave as next")
    }
    self.key = key
  }
}

extension DocumentKey {
  fileprivate var hexadecimal: String { Wire.hexadecimal(collection.utf8) + "." + Wire.hexadecimal(id) }

  fileprivate init?(hexadecimal parts: ArraySlice<String>) {
    guard let collection = parts.first.flatMap({ decodeHexadecimal($0.utf8) }),
      let id = parts.last.flatMap({ decodeHexadecimal($0.utf8) }),
      let name = String(validating: collection, as: UTF8.self)
    else { return nil }
    self.init(collection: Text(name), id: id)
  }
}
