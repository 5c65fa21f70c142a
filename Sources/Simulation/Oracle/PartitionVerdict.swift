import Replication

/// What a node must hold of one partition, judged by the naive rules from what it has: the statements it knows and the runs
/// it stores. A function of these alone, computed anew at each question; who asks often keeps the answers.
package struct PartitionVerdict: Sendable {
  package let acceptance: NaiveAcceptance
  /// Every document that a change with effect wrote, dead ones too, in order.
  package let documents: [NaiveDocument]

  /// - Parameter genesis: the hash before the first change of a replica in this partition.
  package init(
    of partition: Text, rights: NaiveRights, runs: [ObservedRun], genesis: (ReplicaID) -> Digest
  ) {
    acceptance = NaiveAcceptance(partition, rights: rights, runs: runs, genesis: genesis)
    documents = NaiveMerge.documents(
      acceptance.changes, sight: acceptance.sight, groups: acceptance.groups)
  }

  package func document(_ collection: Text, _ id: Value) -> NaiveDocument? {
    let key = NaiveDocument.Key(collection: Array(collection.string.utf8), id: OracleBytes.of(id))
    return documents.first { $0.key == key }
  }

  /// Does the change count, and is it the one of its original and re-issues that does (C4, C22)?
  package func counts(_ hash: Digest, at dot: Dot) -> Bool {
    acceptance.effective.contains(NaiveAcceptance.Named(dot: dot, hash: hash))
  }
}

extension NaiveRights {
  /// C2, in the protocol's own bytes: the first 16 of H(tag `replic` · H(tag `device` · key) · nonce).
  package static func certificate(_ hash: @escaping HashFunction) -> Certificate {
    { declaration, issuer in
      let device = tagged("seamesh/1 device", OracleBytes.digest(issuer.raw), hash)
      let nonce = OracleBytes.of(.uuid(declaration.nonce)).dropFirst()
      let words = tagged("seamesh/1 replic", OracleBytes.digest(device) + nonce, hash).words
      return declaration.replica.high == words.0 && declaration.replica.low == words.1
    }
  }

  private static func tagged(_ tag: String, _ content: [UInt8], _ hash: HashFunction) -> Digest {
    let letters = Array(tag.utf8)
    return (letters + [UInt8](repeating: 0, count: 16 - letters.count) + content).withUnsafeBytes(hash)
  }
}
