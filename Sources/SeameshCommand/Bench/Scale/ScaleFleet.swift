import Engine
import Identity
import Replication
import Seamesh
import Storage
import Wire

/// A fleet of which this process has all keys, so that its history can be of any size: a directory whose node founded it, and
/// authors who sign whatever a measurement needs. It is filled as a ledger fills a directory.
final class ScaleFleet {
  let directory: String
  let fleet: FleetID
  let deviceKey: SigningKey
  private(set) var authors: [ScaleAuthor] = []
  private(set) var statements: [Statement]
  private let root: StatementSigner
  private var lastOfRoot: Statement?

  static let user: Text = "author"

  init(_ run: BenchRun, name: String) throws(Failure) {
    let path = try run.scratch.directory(name)
    directory = path
    (fleet, deviceKey, root, statements) = try measuring {
      _ = try NodeSetup.found(path, fleetName: "bench", user: "bench", label: "sender", profile: ValueMap())
      let (fleet, device) = try NodeSetup.identity(of: path)
      let place = try DataDirectory(existing: path)
      let verifier = StatementVerifier(fleet: fleet)
      let stored = try Store.open(directory: path, fleet: fleet, device: device).statements()
      return (
        fleet, try KeyFile.device.loadKey(in: place),
        StatementSigner(fleet: fleet, key: try KeyFile.fleetRoot.loadKey(in: place)),
        try stored.map { try verifier.verify($0.encoded) }
      )
    }
    lastOfRoot = statements.filter { $0.issuer == root.issuer }.max { $0.sequence < $1.sequence }
  }

  /// In the name of the fleet's root.
  func statement(_ body: Statement.Body) throws -> Statement {
    let statement = try root.sign(body, after: lastOfRoot)
    lastOfRoot = statement
    return statement
  }

  /// Members with one replica each. Admins may take as much of a node as they like.
  func addAuthors(_ count: Int, areAdmins: Bool = false) throws(Failure) {
    for _ in 0..<count {
      try measuring {
        let key = SigningKey()
        let membership = try statement(
          .membership(
            Statement.Membership(
              device: key.publicKey, user: ScaleFleet.user, label: "author",
              role: areAdmins ? FleetFounding.adminRole : "officer", profile: ValueMap())))
        let nonce = UUIDValue(SecureRandom.bytes(16)) ?? .zero
        let declaration = try StatementSigner(fleet: fleet, key: key)
          .declareReplica(nonce: nonce, membership: membership.id)
        guard case .replica(let declared) = declaration.body else { return }
        statements += [membership, declaration]
        authors.append(ScaleAuthor(key: key, replica: declared.replica, fleet: fleet))
      }
    }
  }

  /// Fills the directory with what `body` hands over, as its node would take it from peers.
  func fill(_ body: (_ take: (ScaleRun) throws -> Void) throws -> Void) throws(Failure) {
    try measuring {
      let filling = try LedgerFilling(directory, fleet: fleet, statements)
      var taken: Int64 = 0
      try body { run in
        try filling.take(run.encoded, context: run.context, in: run.partition) { _ in [] }
        taken += run.changes
      }
      try filling.finish()
      guard filling.changes == taken else {
        throw Failure(.failed, "of \(taken) changes made for measuring \(filling.changes) were taken")
      }
    }
  }
}

/// A run as its author signed it.
struct ScaleRun {
  let partition: PartitionName
  let context: VersionVector
  let encoded: [UInt8]
  let changes: Int64
  let end: ChainPosition
}

/// Somebody who signs runs under one replica id, of changes that each make one document of the usual kind.
final class ScaleAuthor {
  let key: SigningKey
  let replica: ReplicaID
  private let fleet: FleetID
  private(set) var heads: [PartitionID: (sequence: UInt64, hash: Digest)] = [:]
  private var made: UInt64 = 0

  init(key: SigningKey, replica: ReplicaID, fleet: FleetID) {
    (self.key, self.replica, self.fleet) = (key, replica, fleet)
  }

  /// The chain's next run; with `fork` one beside what was signed after that place before.
  func run(
    _ name: PartitionName, changes: Int = 1, seen context: VersionVector = VersionVector(),
    codec: PayloadCodec = .plain, fork: (sequence: UInt64, hash: Digest)? = nil
  ) throws -> ScaleRun {
    let chain = ChainIdentity(fleet: fleet, partition: name.id(fleet: fleet, hash: SHA256.hash), replica: replica)
    let head = fork ?? heads[chain.partition] ?? (0, chain.genesis(SHA256.hash))
    var builder = RunBuilder(
      chain: chain, after: head.sequence, hashBefore: head.hash, context: context, hash: SHA256.hash)
    for _ in 0..<changes { try append(to: &builder, codec) }
    let run = builder.close(sign: key.sign)
    if fork == nil { heads[chain.partition] = (run.record.last, run.record.hashAtLast) }
    return ScaleRun(
      partition: name, context: context, encoded: RunCodec.encode(run), changes: Int64(changes),
      end: ChainPosition(sequence: run.record.last, tip: run.record.hashAtLast.tip))
  }

  private func append(to builder: inout RunBuilder, _ codec: PayloadCodec) throws {
    made += 1
    let operations = (0..<4).map { field in
      Operation(
        .set, [.key(Text("field\(field)"))],
        value: .bytes([UInt8](repeating: UInt8(truncatingIfNeeded: made), count: 24)))
    }
    let write = DocumentWrite(
      collection: BenchFleet.collection, id: .uuid(UUIDValue(SecureRandom.bytes(16)) ?? .zero), kind: .create,
      generation: 1, operations: operations)
    let dot = builder.nextDot
    let payload = PayloadEncoder.encode([write], dot: dot)
    let timestamp = HybridTimestamp(milliseconds: 1_700_000_000_000 + made, counter: 0)
    let header = ChangeHeader(
      sequence: dot.sequence, timestamp: timestamp, wall: WallTime(milliseconds: 1_700_000_000_000),
      payloadByteCount: 0, payloadHash: .zero, keyHashes: [])
    let change = try Change.plain(header, payload: payload, chain: builder.chain, SHA256.hash).change
    builder.append(
      payload: payload, keyHashes: change.header.keyHashes, timestamp: timestamp, wall: header.wall, codec: codec)
  }
}

/// Whatever goes wrong ends the measurement with a sentence.
func measuring<Result>(_ body: () throws -> Result) throws(Failure) -> Result {
  do { return try body() } catch let failure as Failure { throw failure } catch { throw Failure(.failed, "\(error)") }
}
