import Replication

/// The order of a result: by the sort fields, ties by the canonical bytes of the id, which count the way the first field
/// does. A total order, so that a position in a result means something.
package struct DocumentOrder: Sendable {
  /// More would cost time for each document and tell nothing.
  package static let fieldLimit = 32

  private let fields: [(path: FieldPath, ascending: Bool)]

  /// What a document is compared by, taken out of it once.
  package struct Key: Sendable {
    fileprivate let values: [Value?]
    fileprivate let id: [UInt8]

    /// About the memory that it takes.
    var heapBytes: Int {
      values.reduce(2 * Value.boxBytes + id.count) { $0 + ($1?.heapBytes ?? 0) + MemoryLayout<Value?>.stride }
    }
  }

  package init(_ sort: [FindRequest.SortField]) throws(NodeError) {
    guard sort.count <= DocumentOrder.fieldLimit else {
      throw NodeError(
        .tooLarge, "A sort takes at most \(DocumentOrder.fieldLimit) fields.",
        limit: .init(DocumentOrder.fieldLimit, "fields"))
    }
    var fields: [(path: FieldPath, ascending: Bool)] = []
    for field in sort { fields.append((try FieldPath(field.path), field.ascending)) }
    self.fields = fields
  }

  package func key(id: Value, _ body: ValueMap) -> Key {
    Key(values: fields.map { DocumentOrder.value($0.path, $0.ascending, id, body) }, id: id.canonicalBytes)
  }

  package func precedes(_ a: Key, _ b: Key) -> Bool {
    for (index, field) in fields.enumerated() {
      let order = DocumentOrder.compare(a.values[index], b.values[index])
      if order != 0 { return field.ascending ? order < 0 : order > 0 }
    }
    let isAscending = fields.first?.ascending ?? true
    return isAscending ? a.id.lexicographicallyPrecedes(b.id) : b.id.lexicographicallyPrecedes(a.id)
  }

  /// Ranges of keys that, read one after the other, give documents in this very order; nil where the order depends on
  /// more than their ids.
  package var keyRanges: [KeyRange]? {
    guard let first = fields.first else { return [.all] }
    guard first.path.segments == ["_id"], first.ascending else { return nil }
    // By value UUIDs come before object ids (``ValueOrder``), by canonical bytes after them; the rest agrees.
    return [
      KeyRange(after: [], below: KeyRange.objectIDs), KeyRange(after: KeyRange.uuids, below: nil),
      KeyRange(after: KeyRange.objectIDs, below: KeyRange.uuids),
    ]
  }

  /// Of several values an ascending sort takes the least, a descending one the greatest. A missing field counts as null;
  /// nil is an empty array, less than anything.
  private static func value(_ path: FieldPath, _ ascending: Bool, _ id: Value, _ body: ValueMap) -> Value? {
    var best: Value?
    _ = path.leads(from: id, body, expandsArrays: true) { value in
      // The array itself is no candidate: its elements follow.
      if case .array = value { return false }
      let value = value ?? .null
      if let present = best, case let order = ValueOrder.compare(value, present), ascending ? order >= 0 : order <= 0 {
        return false
      }
      best = value
      return false
    }
    return best
  }

  private static func compare(_ a: Value?, _ b: Value?) -> Int {
    switch (a, b) {
    case (nil, nil): 0
    case (nil, _): -1
    case (_, nil): 1
    case (let a?, let b?): ValueOrder.compare(a, b)
    }
  }
}

/// Documents whose canonical ids lie between two bounds.
package struct KeyRange: Sendable, Equatable {
  /// Not itself in the range.
  package let after: [UInt8]
  /// Not itself in the range; nil: to the last one.
  package let below: [UInt8]?

  package static let all = KeyRange(after: [], below: nil)
  // What the canonical bytes of such ids begin with (rule M2); no id is this short.
  fileprivate static let objectIDs: [UInt8] = [0x09]
  fileprivate static let uuids: [UInt8] = [0x0a]
}
