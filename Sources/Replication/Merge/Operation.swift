/// One step of a path into a document.
package enum PathSegment: Hashable, Sendable {
  /// A key of a map.
  case key(Text)
  /// An element of a list.
  case element(ListElement)
  /// A member of a set: the canonical bytes of its value (M2). Only in entries; on the wire set operations name the set.
  case member([UInt8])

  /// The same, where a list element goes by another dot.
  func renamed(_ name: (Dot) -> Dot) -> PathSegment {
    guard case .element(let element) = self else { return self }
    let dot = name(element.dot)
    return dot == element.dot ? self : .element(ListElement(position: element.position, dot: dot))
  }
}

/// A list element's identity, with its place in the list (M3): nothing else is needed to show what is written below it.
package struct ListElement: Hashable, Sendable {
  /// 1–512 bytes; list order is the byte order of ``key``.
  package let position: [UInt8]
  /// The change that inserted it.
  package let dot: Dot

  package static let positionByteLimit = 512

  package init(position: [UInt8], dot: Dot) { (self.position, self.dot) = (position, dot) }

  /// position · replica (16) · sequence (8, big-endian) · 80. The last byte leaves room between any two keys.
  package var key: [UInt8] {
    var out = position
    dot.replica.append(to: &out)
    appendBigEndian(dot.sequence, to: &out)
    out.append(0x80)
    return out
  }
}

/// What a change does at one path. Operations describe themselves: no schema is needed to understand them.
package struct Operation: Hashable, Sendable {
  package enum Kind: UInt8, Sendable, CaseIterable {
    case set = 0
    case remove = 1
    case increment = 2
    case listInsert = 3
    case listRemove = 4
    case setAdd = 5
    case setRemove = 6
  }

  package let kind: Kind
  /// `listInsert`, `setAdd`, `setRemove`: the list or set; `listRemove`: the element; else the path itself. At most 64 segments.
  package let path: [PathSegment]
  /// Absent for `remove` and `listRemove`.
  package let value: Value?
  /// Only for `listInsert`: where the new element stands.
  package let position: [UInt8]

  package init(_ kind: Kind, _ path: [PathSegment], value: Value? = nil, position: [UInt8] = []) {
    (self.kind, self.path, self.value, self.position) = (kind, path, value, position)
  }
}

/// What one change does to one document.
package struct DocumentWrite: Hashable, Sendable {
  package enum Kind: UInt8, Sendable, CaseIterable {
    case create = 0
    case edit = 1
    case delete = 2
  }

  package let collection: Text
  package let id: Value
  package let kind: Kind
  /// Odd: alive; even: deleted. 1 ≤ generation < 2^53 (M4, M10).
  package let generation: UInt64
  package let operations: [Operation]

  package init(collection: Text, id: Value, kind: Kind, generation: UInt64, operations: [Operation]) {
    (self.collection, self.id, self.kind) = (collection, id, kind)
    (self.generation, self.operations) = (generation, operations)
  }
}

/// Where a document is found in its partition. Ordered as documents are listed: collection bytes, then canonical id.
package struct DocumentKey: Hashable, Comparable, Sendable {
  package let collection: Text
  /// Canonical bytes (M2) of the document's id.
  package let id: [UInt8]

  package init(collection: Text, id: [UInt8]) { (self.collection, self.id) = (collection, id) }
  package init(collection: Text, id: Value) { self.init(collection: collection, id: id.canonicalBytes) }

  package static func < (a: DocumentKey, b: DocumentKey) -> Bool {
    a.collection == b.collection ? a.id.lexicographicallyPrecedes(b.id) : a.collection < b.collection
  }
}
