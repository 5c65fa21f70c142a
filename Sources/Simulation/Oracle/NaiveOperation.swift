import Replication

/// One operation of one accepted change at one path, as the rules of merging speak of it (M3).
struct NaiveOperation {
  enum Kind: String {
    case create, delete
    case set, remove, increment
    /// A set member's addition and removal.
    case add, drop
  }

  /// What an empty map or array stands for (M3).
  enum Opened { case map, array }

  /// Number of the change among those that are merged.
  let change: Int
  let stamp: NaiveStamp
  let generation: UInt64
  let kind: Kind
  let path: OraclePath
  let value: Value?

  /// M3, M6: the marker that this operation is, if it is one.
  var opened: Opened? {
    guard kind == .set else { return nil }
    switch value {
    case .map(let map)? where map.entries.isEmpty: return .map
    case .array(let items)? where items.isEmpty: return .array
    default: return nil
    }
  }

  var isNumber: Bool {
    switch value {
    case .int?, .double?: kind == .set
    default: false
    }
  }

  /// M12: a delete, create or set-remove leaves no entry.
  var leavesEntry: Bool { kind == .set || kind == .remove || kind == .increment || kind == .add }
}

/// (hlc, replica bytes, sequence): breaks ties between concurrent writes (M7).
struct NaiveStamp {
  let timestamp: UInt64
  let dot: Dot

  static func areInOrder(_ a: NaiveStamp, _ b: NaiveStamp) -> Bool {
    (a.timestamp, a.dot.replica.high, a.dot.replica.low, a.dot.sequence)
      < (b.timestamp, b.dot.replica.high, b.dot.replica.low, b.dot.sequence)
  }

  static func greatest(_ stamps: [NaiveStamp]) -> NaiveStamp? { stamps.max(by: areInOrder) }
}

extension NaiveOperation {
  /// M3: what a change does to a document, each operation at the path where it takes effect.
  static func all(
    of write: DocumentWrite, change: Int, stamp: NaiveStamp, _ groups: NaiveGroups
  ) -> [NaiveOperation] {
    func make(_ kind: Kind, _ path: [PathSegment], _ value: Value?) -> NaiveOperation {
      NaiveOperation(
        change: change, stamp: stamp, generation: write.generation, kind: kind, path: OraclePath(groups.named(path)),
        value: value)
    }
    let document: [NaiveOperation] =
      switch write.kind {
      case .create: [make(.create, [], nil)]
      case .delete: [make(.delete, [], nil)]
      case .edit: []
      }
    return document
      + write.operations.map { operation in
        let (path, value) = (operation.path, operation.value)
        let member = PathSegment.member(OracleBytes.of(value ?? .null))
        switch operation.kind {
        case .set: return make(.set, path, value)
        case .remove, .listRemove: return make(.remove, path, nil)
        case .increment: return make(.increment, path, value)
        case .listInsert:
          let element = PathSegment.element(ListElement(position: operation.position, dot: stamp.dot))
          return make(.set, path + [element], value)
        case .setAdd: return make(.add, path + [member], value)
        case .setRemove: return make(.drop, path + [member], value)
        }
      }
  }
}
