import Replication

/// Stands for a set of statements, as `seamesh.statement_sum` does: a number of them could stand for others.
package enum StatementSum {
  /// The first eight bytes of the hash of all ids, in the order of their bytes.
  package static func of(_ ids: some Sequence<Digest>, _ hash: HashFunction) -> Int64 {
    var input: [UInt8] = []
    for id in ids.sorted() { id.append(to: &input) }
    return Int64(bitPattern: Digest.of(input, hash).words.0)
  }
}
