import Replication

/// What the naive rules say under one set of statements: a function of the set, so that each question is answered once for
/// all nodes that have it.
final class JudgedRights {
  let rights: NaiveRights
  private let encoded: Set<[UInt8]>
  private var levels: [Subject: AccessLevel] = [:]
  private var authors: [Chain: Author] = [:]

  private struct Subject: Hashable {
    let device: PublicKey
    let partition: Text
  }

  private struct Chain: Hashable {
    let replica: ReplicaID
    let partition: Text
  }

  /// What the statements say of whoever writes under a replica id.
  struct Author {
    /// Nil where nobody who may has declared the replica.
    let signer: PublicKey?
    let limits: NaiveLimits
  }

  init(_ statements: some Collection<Statement>, root: PublicKey, limit: Int) {
    rights = NaiveRights(
      root: root, statements: statements.sorted { $0.id < $1.id }, limit: limit,
      certificate: NaiveRights.certificate(FakeCryptography.hash))
    encoded = Set(statements.map(\.encoded))
  }

  var isInDoubt: Bool { rights.isInDoubt }

  /// Is there a statement of just these bytes?
  func holds(_ statement: [UInt8]) -> Bool { encoded.contains(statement) }

  func level(of device: PublicKey, in partition: Text) -> AccessLevel {
    let subject = Subject(device: device, partition: partition)
    if let known = levels[subject] { return known }
    let level = rights.level(of: device, in: partition)
    levels[subject] = level
    return level
  }

  func author(_ replica: ReplicaID, in partition: Text) -> Author {
    let chain = Chain(replica: replica, partition: partition)
    if let known = authors[chain] { return known }
    let author = Author(signer: rights.signer(of: replica), limits: rights.limits(of: replica, in: partition))
    authors[chain] = author
    return author
  }
}
