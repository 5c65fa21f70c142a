/// What acceptance asks about one change beyond its place in the chain.
package struct ChangeFacts: Hashable, Sendable {
  package enum Recognition: Hashable, Sendable {
    case known
    /// Readable, but its author says that what this version does not know matters.
    case unknownExtension
    /// What it writes cannot be told.
    case unknownCodec
  }

  /// A change that is not known in kind holds its chain (rule C4).
  package var recognition: Recognition
  /// ``DocumentRule/ownDocument(of:)``. Needs no filling in outside partitions of the `all-users` rule.
  package var ownDocument: OwnDocument?
  package var origin: ChangeOrigin?

  package init(recognition: Recognition = .known, ownDocument: OwnDocument? = nil, origin: ChangeOrigin? = nil) {
    (self.recognition, self.ownDocument, self.origin) = (recognition, ownDocument, origin)
  }
}

/// A verified run as acceptance sees it: hashes and facts, no payloads.
package struct RunSummary: Hashable, Sendable {
  package let partition: PartitionName
  package let replica: ReplicaID
  package let first: UInt64
  package let hashBefore: Digest
  /// The chain hash after each change.
  package let hashes: [Digest]
  package let context: VersionVector
  /// The key that the run's signature was verified with.
  package let signer: PublicKey
  /// One per change, or empty where every change is an ordinary one.
  package let facts: [ChangeFacts]

  /// No chain comes near, and sums of sequences stay clear of overflow.
  package static let sequenceLimit: UInt64 = 1 << 53
  /// Entries of a context: one per replica that ever wrote in the partition.
  package static let contextEntryLimit = 65_536

  package init(
    partition: PartitionName, replica: ReplicaID, first: UInt64, hashBefore: Digest, hashes: [Digest],
    context: VersionVector, signer: PublicKey, facts: [ChangeFacts] = []
  ) {
    (self.partition, self.replica, self.first) = (partition, replica, first)
    (self.hashBefore, self.hashes, self.context) = (hashBefore, hashes, context)
    (self.signer, self.facts) = (signer, facts)
  }

  package var last: UInt64 { first &+ UInt64(hashes.count) &- 1 }
  package var dot: Dot { Dot(replica: replica, sequence: last) }

  var allFacts: some Sequence<ChangeFacts> { (0..<hashes.count).lazy.map(facts(at:)) }

  /// `index` counts the run's changes from 0.
  func facts(at index: Int) -> ChangeFacts { facts.isEmpty ? ChangeFacts() : facts[index] }

  /// Nil unless the run reaches this sequence.
  package func hash(at sequence: UInt64) -> Digest? {
    sequence >= first && sequence <= last ? hashes[Int(sequence - first)] : nil
  }

  package func isWellFormed(genesis: Digest) -> Bool {
    isWellFormedInItself && (first == 1) == (hashBefore == genesis)
  }

  /// But for what it follows.
  var isWellFormedInItself: Bool {
    !hashes.isEmpty && hashes.count <= Run.changeLimit && (facts.isEmpty || facts.count == hashes.count)
      && first >= 1 && first <= RunSummary.sequenceLimit && RunSummary.isWellFormed(context, of: replica)
  }

  /// A context leaves its own chain out, names nothing at zero, and stays within ``contextEntryLimit`` (rule C3).
  package static func isWellFormed(_ context: VersionVector, of replica: ReplicaID) -> Bool {
    context.count <= contextEntryLimit && context[replica] == nil
      && context.entries.allSatisfy { $0.value.sequence > 0 && $0.value.sequence <= sequenceLimit }
  }
}

extension RunSummary {
  /// `documents`: the decoded payload of the change with that index; asked only where the document rule may matter.
  package init(
    _ run: Run, in partition: PartitionName, signer: PublicKey, formats: KnownFormats = .all,
    documents: (Int) -> [DocumentWrite]?
  ) {
    let needsOwner = partition.keyValue?.key == Statement.Rule.Key.allUsers
    let facts = run.changes.indices.map { index in
      let header = run.changes[index].header
      return ChangeFacts(
        recognition: formats.recognition(of: header),
        ownDocument: needsOwner ? documents(index).flatMap(DocumentRule.ownDocument(of:)) : nil,
        origin: header.origin)
    }
    let ordinary = ChangeFacts()
    self.init(
      partition: partition, replica: run.record.chain.replica, first: run.record.first,
      hashBefore: run.record.hashBefore, hashes: run.hashes, context: run.record.context, signer: signer,
      facts: facts.allSatisfy { $0 == ordinary } ? [] : facts)
  }
}
