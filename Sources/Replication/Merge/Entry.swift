/// One operation as merging sees it: at one path that names elements and members too.
package struct Entry: Hashable, Sendable {
  package enum Kind: UInt8, Sendable {
    /// Also a list insert, which is a set at the new element.
    case set
    /// Also a list removal, which is a remove at the element.
    case remove
    case increment
    /// A set member's addition and removal.
    case add, drop
    /// The document itself begins or ends; at the empty path.
    case create, delete
  }

  package let dot: Dot
  package let timestamp: HybridTimestamp
  package let generation: UInt64
  package let kind: Kind
  package let path: [PathSegment]
  /// Absent for `remove`, `create` and `delete`.
  package let value: Value?

  init(_ context: WriteContext, generation: UInt64, _ kind: Kind, _ path: [PathSegment] = [], _ value: Value? = nil) {
    (self.dot, self.timestamp, self.generation) = (context.dot, context.timestamp, generation)
    (self.kind, self.path, self.value) = (kind, path, value)
  }

  private init(_ other: Entry, at path: [PathSegment]) {
    (dot, timestamp, generation) = (other.dot, other.timestamp, other.generation)
    (kind, self.path, value) = (other.kind, path, other.value)
  }

  /// The same, where list elements go by the dot of the one of their kin that has effect (rule M17).
  fileprivate func named(by kin: KinTable) -> Entry {
    let path = path.map { $0.renamed(kin.name) }
    return path == self.path ? self : Entry(self, at: path)
  }

  /// Opens a container: says what the path is, not what is in it (M3).
  package var marker: Marker? { kind == .set ? value.flatMap(Marker.init) : nil }
  package var stamp: WriteStamp { WriteStamp(timestamp: timestamp, dot: dot) }

  /// Whether the entry stays in a state while nothing dominates it (M12).
  var leavesTrace: Bool {
    switch kind {
    case .set, .remove, .increment, .add: true
    case .drop, .create, .delete: false
    }
  }

  /// An increment's amount.
  var amount: Int64 {
    if kind == .increment, case .int(let amount)? = value { amount } else { 0 }
  }

  /// The order of entries in a state: dot, then path. A change writes a document once, so its generation adds nothing.
  static func standsBefore(_ a: Entry, _ b: Entry) -> Bool {
    a.dot == b.dot ? a.path.order(b.path) == .before : a.dot < b.dot
  }
}

/// What an empty map or array in a write stands for.
package enum Marker: Hashable, Sendable {
  case map
  /// A list, a set, or an array register without items.
  case array

  init?(_ value: Value) {
    switch value {
    case .map(let map) where map.isEmpty: self = .map
    case .array(let items) where items.isEmpty: self = .array
    default: return nil
    }
  }
}

extension AcceptedWrite {
  /// The write's entries; its beginning or end of the document first.
  package var entries: [Entry] {
    let frame: [Entry] =
      switch write.kind {
      case .create: [Entry(context, generation: write.generation, .create)]
      case .delete: [Entry(context, generation: write.generation, .delete)]
      case .edit: []
      }
    let operations = write.operations.map { Entry($0, in: context, generation: write.generation) }
    let kin = context.sight.kin
    return frame + (kin.isEmpty ? operations : operations.map { $0.named(by: kin) })
  }
}

extension Entry {
  init(_ operation: Operation, in context: WriteContext, generation: UInt64) {
    let (path, value) = (operation.path, operation.value)
    let member: () -> [PathSegment] = { path + [.member((value ?? .null).canonicalBytes)] }
    switch operation.kind {
    case .set: self.init(context, generation: generation, .set, path, value)
    case .remove, .listRemove: self.init(context, generation: generation, .remove, path)
    case .increment: self.init(context, generation: generation, .increment, path, value)
    case .listInsert:
      let element = ListElement(position: operation.position, dot: context.dot)
      self.init(context, generation: generation, .set, path + [.element(element)], value)
    case .setAdd: self.init(context, generation: generation, .add, member(), value)
    case .setRemove: self.init(context, generation: generation, .drop, member(), value)
    }
  }

  /// The operation that makes this entry; nil for the beginning and end of a document.
  var operation: Operation? {
    let parent = Array(path.dropLast())
    switch (kind, path.last) {
    case (.set, .element(let element)) where element.dot == dot:
      return Operation(.listInsert, parent, value: value, position: element.position)
    case (.set, _): return Operation(.set, path, value: value)
    case (.remove, .element): return Operation(.listRemove, path)
    case (.remove, _): return Operation(.remove, path)
    case (.increment, _): return Operation(.increment, path, value: value)
    case (.add, _): return Operation(.setAdd, parent, value: value)
    case (.drop, _): return Operation(.setRemove, parent, value: value)
    case (.create, _), (.delete, _): return nil
    }
  }
}
