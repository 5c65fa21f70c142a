import Replication
import Wire

/// Adds to runs of a peer what was not there when their frame was decoded: signers, and payloads that travelled apart.
struct RunCompletion {
  /// The peer has sent the payload, and this node has lost it since, or let it pass as it will the run.
  struct LostPayload: Error {}
  /// The payload waited whole, and is not as it came.
  struct SpoiledShare: Error {
    let key: StagedKey
    let session: SessionID
  }

  private let state: EngineState
  private let batch: RunBatch
  private let session: SessionID

  init(_ state: EngineState, _ batch: RunBatch, _ session: SessionID) {
    (self.state, self.batch, self.session) = (state, batch, session)
  }

  /// Bytes of all payloads that travelled apart from the runs of one message, which names each in a hundred bytes. Four
  /// of the largest fit; an honest sender puts one into a message.
  static let awaitedByteLimit = 16 * 1024 * 1024

  /// Whether payloads of these runs are to be looked for on disk.
  static func awaitsPayloads(_ runs: [ArrivedRun]) throws(EngineError) -> Bool {
    let awaited = runs.reduce(0) { $0 + $1.awaitedByteCount }
    guard awaited <= awaitedByteLimit else {
      throw .payloadsTooLarge(byteCount: awaited, limit: awaitedByteLimit)
    }
    return awaited > 0
  }

  /// The run with its signer and payload.
  func completed(_ run: ArrivedRun) throws -> IncomingRun {
    do {
      return try whole(run)
    } catch let error as any RuleBreach {
      throw BrokenRun(run.incoming.encoded, in: batch.name, error)
    }
  }

  private func whole(_ run: ArrivedRun) throws -> IncomingRun {
    guard var content = run.open else { return run.incoming }
    var incoming = run.incoming
    if incoming.signer == nil {
      // Who decoded it may have known fewer statements than are here now.
      let decoder = FrameDecoder(fleet: state.identity.fleet, state.identity.cryptography)
      incoming = try decoder.arrived(
        content.run, context: incoming.context, in: batch.name, under: state.mesh.ledger.authority
      ).incoming
    }
    guard let awaited = content.awaitedPayload else { return incoming }
    try content.attach(try arrived(awaited.hash, awaited.byteCount))
    return incoming.with(content)
  }

  /// A payload that travelled ahead of its run, as it lies on disk, whoever sent it.
  private func arrived(_ hash: Digest, _ byteCount: Int) throws -> [UInt8] {
    if let known = try state.store.intactPayload(hash) { return known }
    if let key = state.staged.whole(hash, in: state.identity.id(of: batch.name)) {
      let bytes = try state.store.stagedBytes(key)
      // It may have waited for long, and what waits has no sum.
      guard Digest.of(bytes, state.identity.cryptography.hash) == hash else {
        throw SpoiledShare(key: key, session: session)
      }
      return bytes
    }
    let (mesh, count) = (state.mesh, UInt64(byteCount))
    guard mesh.sessions[session]?.wasSent(hash, byteCount: count, aheadOf: batch, mesh.ledger) ?? true else {
      throw EngineError.payloadNotThere
    }
    throw LostPayload()
  }
}

extension NodeEngine {
  /// What waited and is not as it came goes, so that it is asked for anew. Once in a session: a disk that spoils it each time would
  /// have it sent for ever.
  func completed(_ run: ArrivedRun, by completion: RunCompletion) throws -> IncomingRun {
    do {
      return try completion.completed(run)
    } catch let spoiled as RunCompletion.SpoiledShare {
      try removeShare(spoiled.key)
      guard state.noteSpoiled(spoiled) else { throw DamagedLog("a payload that waited is not as it came, again") }
      throw RunCompletion.LostPayload()
    }
  }

  func removeShare(_ key: StagedKey) throws {
    try store { try $0.removePieces(key) }
    state.staged.remove(key)
  }
}

extension EngineState {
  /// False where it is not the first time in its session.
  fileprivate func noteSpoiled(_ spoiled: RunCompletion.SpoiledShare) -> Bool {
    spoiledShares = spoiledShares.filter { mesh.sessions[$0.key] != nil }
    return spoiledShares[spoiled.session, default: []].insert(spoiled.key).inserted
  }
}
