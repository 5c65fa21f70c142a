import Replication
import Wire

/// Adds to runs of a peer what was not there when their frame was decoded: signers, and payloads that travelled apart.
struct RunCompletion {
  private let state: EngineState

  init(_ state: EngineState) { self.state = state }

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

  /// The run with its signer and payload. Gets `distrusted` where the payload's pieces are not what the run names.
  func completed(
    _ run: ArrivedRun, _ partition: PartitionName, distrusted: inout [Digest]
  ) throws -> IncomingRun {
    guard var content = run.open else { return run.incoming }
    var incoming = run.incoming
    if incoming.signer == nil {
      // Who decoded it may have known fewer statements than are here now.
      let decoder = FrameDecoder(fleet: state.identity.fleet, state.identity.cryptography)
      incoming = try decoder.arrived(
        content.run, context: incoming.context, in: partition, under: state.mesh.authority
      ).incoming
    }
    guard let awaited = content.awaitedPayload else { return incoming }
    do {
      try content.attach(try arrived(awaited.hash, awaited.byteCount))
    } catch {
      // Pieces may stem from another peer than the run: none of them is trusted any more, and all are asked for anew.
      distrusted.append(awaited.hash)
      throw error
    }
    return incoming.with(content)
  }

  /// A payload that travelled ahead of its run, as it lies on disk.
  private func arrived(_ hash: Digest, _ byteCount: Int) throws -> [UInt8] {
    if let known = try state.store.largePayload(hash) { return known }
    let payload = try state.store.stagedPayload(hash, byteLimit: byteCount)
    guard payload.count == byteCount else { throw EngineError.payloadNotThere }
    return payload
  }
}
