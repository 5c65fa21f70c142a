import Replication
import Simulation
import Testing
import Wire

/// One case of a `merge-*.json` file.
struct MergeCase {
  let name: String
  let changes: [ReferenceChange]
  /// How far each chain counts.
  let accepted: [(replica: ReplicaID, sequence: UInt64)]
  /// Originals, each with its re-issues in the order in which they take effect (M17).
  let groups: [[Dot]]
  let expected: MergeView

  var counted: [ReferenceChange] {
    let last = Dictionary(uniqueKeysWithValues: accepted.map { ($0.replica, $0.sequence) })
    return changes.filter { $0.dot.sequence <= last[$0.dot.replica, default: 0] }
  }
}

/// What documents show, in order.
struct MergeView: Equatable {
  struct Document: Equatable {
    let key: DocumentKey
    let generation: UInt64
    let body: ValueMap?
  }

  struct Listed: Equatable {
    let key: DocumentKey
    let generation: UInt64
    /// Of a set member, the set's path.
    let path: [PathSegment]
    let kind: Entry.Kind
    let value: Value?
    let dot: Dot
    let timestamp: UInt64
  }

  var documents: [Document] = []
  var inbox: [Listed] = []

  init(_ states: [DocumentKey: DocumentState]) {
    for (key, state) in states.sorted(by: { $0.key < $1.key }) {
      if state.isAlive { documents.append(Document(key: key, generation: state.generation, body: state.shown())) }
      inbox += state.inbox().map { conflict in
        Listed(
          key: key, generation: conflict.generation,
          path: conflict.kind == .add ? Array(conflict.path.dropLast()) : conflict.path, kind: conflict.kind,
          value: conflict.value, dot: conflict.dot, timestamp: conflict.timestamp.rawValue)
      }
    }
  }

  init(documents: [Document], inbox: [Listed]) { (self.documents, self.inbox) = (documents, inbox) }
}

/// Reads the vectors: extended JSON throughout.
enum MergeVectors {
  static func load(_ file: String) throws -> [Value] {
    try ExtendedJSON.parse(MergeVectorFile.bytes(file), limits: .init(byteCount: 1 << 24)).items
  }

  static func cases(_ file: String) throws -> [MergeCase] { try load(file).map(MergeCase.init) }

  /// A replica's name stands for its UTF-8, padded with zero bytes.
  static func replica(_ name: Text) throws -> ReplicaID {
    try #require(ReplicaID(name.bytes + [UInt8](repeating: 0, count: 16 - name.bytes.count)))
  }

  static func bytes(_ value: Value) throws -> [UInt8] { try #require(decodeHexadecimal(value.text.utf8)) }

  static func segment(_ value: Value) throws -> PathSegment {
    if case .string(let key) = value { return .key(key) }
    let element = try value["e"].items
    let dot = Dot(replica: try replica(element[1].text), sequence: try element[2].count)
    return .element(ListElement(position: try bytes(element[0]), dot: dot))
  }

  static func operation(_ value: Value, _ segment: (Value) throws -> PathSegment) throws -> Operation {
    let kinds: [Text: Operation.Kind] = [
      "set": .set, "remove": .remove, "increment": .increment, "list-insert": .listInsert,
      "list-remove": .listRemove, "set-add": .setAdd, "set-remove": .setRemove,
    ]
    let kind = try #require(kinds[value["op"].text])
    let position = try value.optional("position").map { try bytes($0) } ?? []
    return Operation(
      kind, try value["path"].items.map(segment), value: try value.optional("value"), position: position)
  }
}

extension MergeCase {
  init(_ value: Value) throws {
    name = try value["name"].text.string
    changes = try value["changes"].items.map(ReferenceChange.init)
    accepted = try value["accepted"].map.entries.map {
      (try MergeVectors.replica($0.key), try $0.value.count)
    }
    groups = try value.optional("groups")?.items.map { try $0.items.map(Dot.init) } ?? []
    expected = MergeView(
      documents: try value["documents"].items.map { document in
        MergeView.Document(
          key: try DocumentKey(document), generation: try document["generation"].count, body: try document["body"].map)
      },
      inbox: try value["inbox"].items.map(MergeView.Listed.init))
  }
}

extension Dot {
  fileprivate init(_ value: Value) throws {
    let items = try value.items
    self.init(replica: try MergeVectors.replica(items[0].text), sequence: try items[1].count)
  }
}

extension DocumentKey {
  fileprivate init(_ value: Value) throws { self.init(collection: try value["collection"].text, id: try value["id"]) }
}

extension MergeView.Listed {
  init(_ value: Value) throws {
    let kinds: [Text: Entry.Kind] = ["set": .set, "remove": .remove, "increment": .increment, "set-add": .add]
    key = try DocumentKey(value)
    generation = try value["generation"].count
    path = try value["path"].items.map(MergeVectors.segment)
    kind = try #require(kinds[value["kind"].text])
    self.value = try value.optional("value")
    dot = Dot(replica: try MergeVectors.replica(value["replica"].text), sequence: try value["sequence"].count)
    timestamp = try value["hlc"].count
  }
}

extension ReferenceChange {
  init(_ value: Value) throws {
    var context = VersionVector()
    for entry in try value["context"].map.entries {
      context[try MergeVectors.replica(entry.key)] = ChainPosition(sequence: try entry.value.count, tip: .zero)
    }
    let dot = Dot(replica: try MergeVectors.replica(value["replica"].text), sequence: try value["sequence"].count)
    self.init(
      WriteContext(dot: dot, timestamp: HybridTimestamp(rawValue: try value["hlc"].count), context: context),
      writes: try value["documents"].items.map(DocumentWrite.init))
  }
}

extension DocumentWrite {
  init(_ value: Value) throws {
    let kinds: [Text: DocumentWrite.Kind] = ["create": .create, "edit": .edit, "delete": .delete]
    self.init(
      collection: try value["collection"].text, id: try value["id"],
      kind: try #require(kinds[value["kind"].text]), generation: try value["generation"].count,
      operations: try value["operations"].items.map { try MergeVectors.operation($0, MergeVectors.segment) })
  }
}

/// Reading a value as what a vector must hold there.
extension Value {
  var map: ValueMap {
    get throws {
      guard case .map(let map) = self else { throw Mismatch(value: self) }
      return map
    }
  }

  var items: [Value] {
    get throws {
      guard case .array(let items) = self else { throw Mismatch(value: self) }
      return items
    }
  }

  var text: Text {
    get throws {
      guard case .string(let text) = self else { throw Mismatch(value: self) }
      return text
    }
  }

  var count: UInt64 {
    get throws {
      guard case .int(let number) = self else { throw Mismatch(value: self) }
      return try #require(UInt64(exactly: number))
    }
  }

  func optional(_ key: Text) throws -> Value? { try map[key] }

  subscript(_ key: Text) -> Value {
    get throws {
      guard let value = try map[key] else { throw Mismatch(value: self) }
      return value
    }
  }

  struct Mismatch: Error { let value: Value }
}
