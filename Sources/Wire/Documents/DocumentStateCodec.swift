import Replication

/// A document's merge state as it is stored: `[generation, [group…]]`, groups ascending by replica, sequence and
/// generation (`Docs/PROTOCOL.md`, "Document state").
package enum DocumentStateCodec {
  /// Takes groups in any order. No two have both dot and generation in common.
  package static func encode(generation: UInt64, groups: [OperationGroup]) -> [UInt8] {
    var writer = CBORWriter(reserving: 256)
    writer.stateHeader(generation: generation, groupCount: groups.count)
    for group in groups.sorted(by: { ($0.dot, $0.generation) < ($1.dot, $1.generation) }) {
      writer.groupHeader(dot: group.dot, timestamp: group.timestamp, generation: group.generation)
      writer.operations(group.operations, dot: group.dot)
    }
    return writer.bytes
  }

  /// What the head of a state that does not read says nevertheless; nil where that does not read either.
  package static func generation(of bytes: ArraySlice<UInt8>) -> UInt64? {
    var reader = CBORReader(bytes)
    guard let count = try? reader.readArrayHeader(), (1...2).contains(count) else { return nil }
    return try? reader.readOrdinal()
  }

  /// Stands in place of a state that is to be made anew, and keeps its generation where that is known: `[generation]`, or
  /// nothing. It does not ``decode(_:)``.
  package static func encodeSetAside(generation: UInt64?) -> [UInt8] {
    guard let generation else { return [] }
    var writer = CBORWriter(reserving: 16)
    writer.arrayHeader(1)
    writer.unsigned(generation)
    return writer.bytes
  }

  package static func isSetAside(_ bytes: [UInt8]) -> Bool { bytes.isEmpty || bytes.first == setAsideByte }

  /// With this byte, or not at all, begins what ``encodeSetAside(generation:)`` gives, and no state.
  package static let setAsideByte: UInt8 = 0x81

  /// - Throws: ``CBORError`` if the stored bytes are damaged.
  package static func decode(
    _ bytes: ArraySlice<UInt8>
  ) throws(CBORError) -> (generation: UInt64, groups: [OperationGroup]) {
    var reader = CBORReader(bytes)
    try reader.readArrayHeader(count: 2)
    let generation = try reader.readOrdinal()
    var groups: [OperationGroup] = []
    for _ in 0..<(try reader.readArrayHeader()) {
      let start = reader.offset
      let group = try reader.readGroup()
      if let last = groups.last, (last.dot, last.generation) >= (group.dot, group.generation) {
        throw CBORError(.keyOrder, at: start)
      }
      groups.append(group)
    }
    try reader.finish()
    return (generation, groups)
  }
}

extension CBORWriter {
  /// The state of a document that one change has made and no other has touched, without decoding anything: operations
  /// are stored as the payload has them, the change's own elements named by their position alone.
  ///
  /// - Parameter operations: the bytes at ``DocumentWriteView/operations``.
  package mutating func createdState(
    dot: Dot, timestamp: HybridTimestamp, generation: UInt64, operations: ArraySlice<UInt8>
  ) {
    stateHeader(generation: generation, groupCount: 1)
    groupHeader(dot: dot, timestamp: timestamp, generation: generation)
    encoded(operations)
  }

  fileprivate mutating func stateHeader(generation: UInt64, groupCount: Int) {
    arrayHeader(2)
    unsigned(generation)
    arrayHeader(groupCount)
  }

  /// Everything of a group before its operations.
  fileprivate mutating func groupHeader(dot: Dot, timestamp: HybridTimestamp, generation: UInt64) {
    arrayHeader(5)
    replica(dot.replica)
    unsigned(dot.sequence)
    unsigned(timestamp.rawValue)
    unsigned(generation)
  }
}

extension CBORReader {
  fileprivate mutating func readGroup() throws(CBORError) -> OperationGroup {
    try readArrayHeader(count: 5)
    let dot = Dot(replica: try readReplica(), sequence: try readOrdinal())
    return OperationGroup(
      dot: dot, timestamp: HybridTimestamp(rawValue: try readUnsigned()), generation: try readOrdinal(),
      operations: try readOperations(dot: dot))
  }
}
