/// The name of a partition: 1–255 bytes of UTF-8 without control characters (below U+0020, and U+007F).
package struct PartitionName: Hashable, Comparable, Sendable {
  package let text: Text

  package static let byteLimit = 255

  package enum Invalid: Error, Equatable {
    case empty
    case tooLong(byteCount: Int, limit: Int)
    case controlCharacter(offset: Int)
  }

  package init(_ text: Text) throws(Invalid) {
    let count = text.utf8.count
    guard count > 0 else { throw .empty }
    guard count <= PartitionName.byteLimit else { throw .tooLong(byteCount: count, limit: PartitionName.byteLimit) }
    if let offset = text.utf8.enumerated().first(where: { $0.element < 0x20 || $0.element == 0x7f })?.offset {
      throw .controlCharacter(offset: offset)
    }
    self.text = text
  }

  /// `H(domain, fleet, name)`.
  package func id(fleet: FleetID, hash: HashFunction) -> PartitionID {
    var input = DomainTag.partition.bytes
    fleet.digest.append(to: &input)
    input.append(contentsOf: text.utf8)
    return PartitionID(Digest.of(input, hash))
  }

  package static func < (a: PartitionName, b: PartitionName) -> Bool { a.text < b.text }
}
