/// A reference to bytes that travel apart. The content's hash alone says which bytes they are; size and type tell of them,
/// and the list hash lets a receiver check them piece by piece.
///
/// A list that does not fit the content makes the reference one that cannot be fetched, and no other of the same content:
/// it stays a value like any other.
package struct BlobReference: Hashable, Sendable {
  /// SHA-256 of the content.
  package let hash: Digest
  package let size: Int64
  /// Media type.
  package let type: Text
  /// ``listHash(ofPieces:_:)`` of the content. Nil where it is one piece, which `hash` checks.
  package let listHash: Digest?

  package static let sizeLimit: Int64 = 16 << 30
  /// Bytes of each piece but the last.
  package static let pieceByteCount: Int64 = 262_144

  /// Nil unless the size is within its limit, and a list hash is there exactly where the content has several pieces.
  package init?(hash: Digest, size: Int64, type: Text, listHash: Digest? = nil) {
    guard (0...BlobReference.sizeLimit).contains(size), (size > BlobReference.pieceByteCount) == (listHash != nil)
    else {
      return nil
    }
    (self.hash, self.size, self.type, self.listHash) = (hash, size, type, listHash)
  }

  /// `pieces`: SHA-256 of each piece of the content, in order.
  package static func listHash(ofPieces pieces: [Digest], _ hash: HashFunction) -> Digest {
    var input = DomainTag.pieces.bytes
    input.reserveCapacity(DomainTag.byteCount + pieces.count * Digest.byteCount)
    for piece in pieces { piece.append(to: &input) }
    return Digest.of(input, hash)
  }

  /// Whether rule M2 tells them apart: the list hash is no part of it.
  func isEqual(_ other: BlobReference) -> Bool { (hash, size, type) == (other.hash, other.size, other.type) }
}

extension Value {
  /// Whether a write of `other` would change nothing: equal, and every blob in it with the same list.
  ///
  /// Merge goes by equality alone. A write does not, or a list that was wrong could not be put right.
  func isSame(as other: Value) -> Bool { self == other && lists == other.lists }

  /// The list hashes of all blobs in the value, in its order.
  private var lists: [Digest?] {
    switch self {
    case .blob(let blob): [blob.listHash]
    case .array(let items): items.flatMap(\.lists)
    case .map(let map): map.entries.flatMap(\.value.lists)
    default: []
    }
  }
}
