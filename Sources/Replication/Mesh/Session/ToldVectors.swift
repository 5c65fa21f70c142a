/// Vectors that this side told on a session, so that the peer's first pull of a partition may say how its own differs from one
/// of them. Vectors cross, so that the last is not always the one which the peer had.
struct ToldVectors: Sendable {
  private var vectors: [PartitionID: [VersionVector]] = [:]

  /// Of one partition.
  static let limit = 3
  /// Below that a reference saves next to nothing, and most partitions are.
  static let leastEntries = 64

  static func mark(of vector: VersionVector, _ hash: HashFunction) -> UInt64 { vector.digest(.vector, hash).words.0 }

  mutating func note(_ vector: VersionVector, of partition: PartitionID) {
    guard vector.count >= ToldVectors.leastEntries else { return }
    vectors[partition, default: []].append(vector)
    if vectors[partition, default: []].count > ToldVectors.limit { vectors[partition]?.removeFirst() }
  }

  /// What the peer's first pull refers to, if it does; no later one may.
  mutating func take(_ mark: UInt64?, of partition: PartitionID, _ hash: HashFunction) -> VersionVector? {
    let told = vectors.removeValue(forKey: partition)
    return mark.flatMap { mark in told?.last { ToldVectors.mark(of: $0, hash) == mark } }
  }

  mutating func forget(_ partition: PartitionID) { vectors[partition] = nil }
}

extension PartitionVector {
  /// How it differs from what the peer told, where that is shorter.
  func differing(from told: VersionVector, _ hash: HashFunction) -> PartitionVector? {
    let differences = vector.differing(from: told)
    guard differences.count < vector.count, differences.count <= PartitionVector.entryLimit else { return nil }
    let gone = ChainPosition(sequence: 0, tip: .zero)
    return PartitionVector(
      name: name, vector: VersionVector(differences.map { ($0.replica, $0.position ?? gone) }), staged: staged,
      base: ToldVectors.mark(of: told, hash))
  }

  /// Put together with what was told; without that, what is said for certain.
  func whole(on told: VersionVector?) -> PartitionVector {
    guard base != nil else { return self }
    var vector = told ?? VersionVector()
    for (replica, position) in self.vector.entries { vector[replica] = position.sequence > 0 ? position : nil }
    return PartitionVector(name: name, vector: vector, staged: staged)
  }
}
