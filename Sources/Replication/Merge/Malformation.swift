/// Why a change's writes are refused, judged on the change alone so that every node judges alike (M4).
package enum Malformation: Error, Hashable, Sendable {
  case documentTwice
  /// Not 1 ≤ generation < 2^53, or even for a create or edit, or odd for a delete.
  case generation
  /// A delete with operations, or an edit without.
  case operations
  case pathTwice
  /// An operation above another that is no marker.
  case pathAboveAnother
  /// Empty, longer than ``pathLimit``, not beginning with a key, beginning with `_id`, or naming a set member.
  case path
  /// A list position not of 1–512 bytes.
  case position
  /// An element whose insertion the change has not seen.
  case element
  /// A list operation off a list element, or another operation on one.
  case kind
  /// A value that is missing or a map with entries, or an increment that is no int64 or 0.
  case value

  package static let pathLimit = 64
  package static let generationLimit: UInt64 = 1 << 53
}

extension WriteContext {
  /// The first thing wrong with the writes of this change; nil if they are well formed.
  package func malformation(of writes: [DocumentWrite]) -> Malformation? {
    var keys: Set<DocumentKey> = []
    for write in writes {
      guard keys.insert(DocumentKey(collection: write.collection, id: write.id)).inserted else { return .documentTwice }
      if let wrong = malformation(of: write) { return wrong }
    }
    return nil
  }

  private func malformation(of write: DocumentWrite) -> Malformation? {
    guard (1..<Malformation.generationLimit).contains(write.generation),
      write.generation.isMultiple(of: 2) == (write.kind == .delete)
    else { return .generation }
    switch write.kind {
    case .create: break
    case .edit: if write.operations.isEmpty { return .operations }
    case .delete: if !write.operations.isEmpty { return .operations }
    }
    var entries: [Entry] = []
    for operation in write.operations {
      if operation.path.contains(where: \.isMember) { return .path }
      let entry = Entry(operation, in: self, generation: write.generation)
      if let wrong = malformation(of: operation, as: entry) { return wrong }
      entries.append(entry)
    }
    return collision(among: entries)
  }

  private func malformation(of operation: Operation, as entry: Entry) -> Malformation? {
    guard case .key(let first)? = operation.path.first, first != "_id", entry.path.count <= Malformation.pathLimit
    else {
      return .path
    }
    var endsAtElement = false
    for segment in entry.path {
      endsAtElement = false
      guard case .element(let element) = segment else { continue }
      guard (1...ListElement.positionByteLimit).contains(element.position.count) else { return .position }
      guard names(element.dot) else { return .element }
      endsAtElement = true
    }
    let isListOperation = operation.kind == .listInsert || operation.kind == .listRemove
    guard endsAtElement == isListOperation || operation.kind == .set else { return .kind }
    return operation.hasFittingValue ? nil : .value
  }

  /// In path order, equal paths stand together, and right behind a path stands what is below it.
  private func collision(among entries: [Entry]) -> Malformation? {
    let sorted = entries.sorted { $0.path.order($1.path) == .before }
    for (entry, next) in zip(sorted, sorted.dropFirst()) {
      if entry.path.order(next.path) == .same { return .pathTwice }
      if entry.marker == nil, entry.path.isAbove(next.path) { return .pathAboveAnother }
    }
    return nil
  }
}

extension PathSegment {
  package var isMember: Bool {
    if case .member = self { true } else { false }
  }
}

extension Operation {
  fileprivate var hasFittingValue: Bool {
    switch (kind, value) {
    case (.set, .map(let map)?), (.listInsert, .map(let map)?): map.isEmpty
    case (.set, _?), (.listInsert, _?), (.setAdd, _?), (.setRemove, _?): true
    case (.increment, .int(let amount)?): amount != 0
    case (.remove, _), (.listRemove, _): true
    case (_, _): false
    }
  }
}
