import Replication

/// Builds the writes of a payload: the slow path, taken where a merge needs them.
package enum PayloadDecoder {
  /// - Throws: ``PayloadError`` unless the payload is well formed.
  package static func decodeWrites(_ payload: ArraySlice<UInt8>, dot: Dot) throws(PayloadError) -> [DocumentWrite] {
    var scanner = PayloadScanner()
    var writes: [DocumentWrite] = []
    for view in try scanner.scan(payload, dot: dot).documents {
      writes.append(
        DocumentWrite(
          collection: view.collection(in: payload), id: try view.id(in: payload), kind: view.kind,
          generation: view.generation, operations: try decodeOperations(payload[view.operations], dot: dot)))
    }
    return writes
  }

  /// The operations of one document, from the bytes at ``DocumentWriteView/operations``, that have been scanned.
  package static func decodeOperations(
    _ encoded: ArraySlice<UInt8>, dot: Dot
  ) throws(PayloadError) -> [Operation] {
    var reader = CBORReader(encoded)
    let operations = try reading(try reader.readOperations(dot: dot))
    try reading(try reader.finish())
    return operations
  }
}

extension CBORReader {
  mutating func readOperations(dot: Dot) throws(CBORError) -> [Operation] {
    let count = try readArrayHeader()
    var operations: [Operation] = []
    operations.reserveCapacity(min(count, Run.operationLimit))
    for _ in 0..<count { operations.append(try readOperation(dot: dot)) }
    return operations
  }

  private mutating func readOperation(dot: Dot) throws(CBORError) -> Operation {
    let start = offset
    let count = try readArrayHeader()
    guard let kind = Operation.Kind(rawValue: try readUnsigned(UInt8.self)), count == kind.fieldCount else {
      throw CBORError(.wrongLength, at: start)
    }
    let path = try readPath(dot: dot)
    return Operation(
      kind, path, value: count > 2 ? try readValue(depth: path.count + kind.addedSegments + 1) : nil,
      position: kind == .listInsert ? Array(try readBytes()) : [])
  }

  private mutating func readPath(dot: Dot) throws(CBORError) -> [PathSegment] {
    if try nextMajor() == .text { return [.key(try readText())] }
    var path: [PathSegment] = []
    for _ in 0..<(try readArrayHeader()) {
      guard try nextMajor() == .array else {
        path.append(.key(try readText()))
        continue
      }
      let start = offset
      let count = try readArrayHeader()
      let position = Array(try readBytes())
      switch count {
      case 1: path.append(.element(ListElement(position: position, dot: dot)))
      case 3:
        let replica = try readReplica()
        path.append(
          .element(ListElement(position: position, dot: Dot(replica: replica, sequence: try readOrdinal()))))
      default: throw CBORError(.wrongLength, at: start)
      }
    }
    return path
  }
}

extension Operation.Kind {
  /// Kind and path, then what the kind has of value and position.
  var fieldCount: Int {
    switch self {
    case .remove, .listRemove: 2
    case .set, .increment, .setAdd, .setRemove: 3
    case .listInsert: 4
    }
  }

  /// What the path at which the operation takes effect has more than the path that it names.
  var addedSegments: Int {
    switch self {
    case .listInsert, .setAdd, .setRemove: 1
    case .set, .remove, .increment, .listRemove: 0
    }
  }
}
