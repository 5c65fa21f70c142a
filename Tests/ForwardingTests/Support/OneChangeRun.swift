import Identity
import Replication
import Wire

@testable import Engine

/// A signed run of one change, which creates the document whose id is `id`.
///
/// - Parameter hashBefore: of the chain behind `sequence` changes.
func oneChangeRun(
  _ chain: ChainIdentity, after sequence: UInt64, _ hashBefore: Digest, _ context: VersionVector = VersionVector(),
  id: Int64, _ key: SigningKey
) throws -> Run {
  var builder = RunBuilder(chain: chain, after: sequence, hashBefore: hashBefore, context: context, hash: SHA256.hash)
  let write = DocumentWrite(
    collection: "c", id: .int(id), kind: .create, generation: 1,
    operations: [Operation(.set, [.key("n")], value: .int(1))])
  let payload = PayloadEncoder.encode([write], dot: builder.nextDot)
  let change = try ComposedChange(
    WriteContext(dot: builder.nextDot, timestamp: .zero, context: builder.context),
    wall: WallTime(milliseconds: 0), payload: payload, in: chain, SHA256.hash)
  builder.append(payload: payload, keyHashes: change.keyHashes, timestamp: .zero, wall: change.wall)
  return builder.close(sign: key.sign)
}
