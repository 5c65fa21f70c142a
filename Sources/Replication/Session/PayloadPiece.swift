/// A part of a payload that travels apart from its run, ahead of it. Belongs to a stream as the run does.
package struct PayloadPiece: Sendable, Equatable {
  package let name: PartitionName
  /// As for ``RunBatch/stream``; ``evidence`` ahead of a run that shows a fork.
  package let stream: UInt64
  package let hash: Digest
  package let total: UInt64
  package let offset: UInt64
  package let bytes: ArraySlice<UInt8>

  package static let byteLimit = 64 * 1024
  /// Of all but a payload's last: so that pieces cost no more than their bytes.
  package static let leastByteCount = 16 * 1024
  package static let evidence: UInt64 = 0

  package init(
    name: PartitionName, stream: UInt64, hash: Digest, total: UInt64, offset: UInt64, bytes: ArraySlice<UInt8>
  ) {
    (self.name, self.stream, self.hash) = (name, stream, hash)
    (self.total, self.offset, self.bytes) = (total, offset, bytes)
  }

  /// Where the next one begins.
  package var end: UInt64 { offset.addingReportingOverflow(UInt64(bytes.count)).partialValue }

  /// Somebody could have cut it off a payload that travels apart.
  package var isPossible: Bool {
    guard total > UInt64(Run.inlinePayloadByteLimit), total <= UInt64(Run.changePayloadByteLimit), offset < total,
      !bytes.isEmpty, bytes.count <= PayloadPiece.byteLimit, UInt64(bytes.count) <= total - offset
    else { return false }
    return bytes.count >= PayloadPiece.leastByteCount || end == total
  }
}

/// How much of a payload is here, as a pull names it.
package struct StagedPayload: Sendable, Equatable {
  package let hash: Digest
  package let byteCount: UInt64
  package init(hash: Digest, byteCount: UInt64) { (self.hash, self.byteCount) = (hash, byteCount) }
}

extension ApartPayload {
  /// From `offset` on, in order.
  func pieces(from offset: UInt64, of name: PartitionName, on stream: UInt64) -> [PayloadPiece] {
    var pieces: [PayloadPiece] = []
    while case let begin = pieces.last?.end ?? offset, begin < UInt64(bytes.count) {
      pieces.append(piece(from: begin, PayloadPiece.byteLimit, of: name, on: stream))
    }
    return pieces
  }

  func piece(from offset: UInt64, _ byteLimit: Int, of name: PartitionName, on stream: UInt64) -> PayloadPiece {
    let rest = bytes.dropFirst(Int(min(offset, UInt64(bytes.count))))
    return PayloadPiece(
      name: name, stream: stream, hash: hash, total: UInt64(bytes.count),
      offset: UInt64(rest.startIndex - bytes.startIndex), bytes: rest.prefix(byteLimit))
  }
}
