import Replication
import Wire

/// A member whose words are spoiled on the way: every field that nobody signed may be anything. Its signed statements and
/// runs it cannot change, only hold back, repeat or garble.
struct Liar {
  private var random: SimulationRandom

  init(_ random: SimulationRandom) { self.random = random }

  /// What goes on the wire instead.
  mutating func spoil(_ frame: [UInt8], in world: World) -> [[UInt8]] {
    guard random.chance(30), let message = try? MessageCodec.decode(frame[...]) else { return [frame] }
    world.count(.lie)
    switch message {
    case .have(let vector): return encoded([.have(spoiled(vector))])
    case .pull(let stream, let vector):
      return encoded([.pull(stream: random.chance(20) ? random.next() % 8 : stream, spoiled(vector))])
    case .vectors(let vectors): return encoded([.vectors(vectors.map { spoiled($0) })])
    case .runs(let batch): return [spoiled(batch, frame)]
    case .payloadPiece(let piece) where random.chance(30): return encoded([.payloadPiece(spoiled(piece))])
    case .interest, .summary, .statementIDs, .statements, .payloadPiece, .chainProbe, .interestChange:
      return random.chance(50) ? [] : [frame, frame]
    case .ping(let nonce): return encoded([.pong(nonce: nonce &+ 1)])
    default: return [frame]
    }
  }

  private mutating func spoiled(_ piece: PayloadPiece) -> PayloadPiece {
    var bytes = Array(piece.bytes)
    if !bytes.isEmpty { bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8)) }
    return PayloadPiece(hash: piece.hash, total: piece.total, offset: piece.offset, bytes: bytes[...])
  }

  private func encoded(_ messages: [Message]) -> [[UInt8]] { messages.map { MessageCodec.encode($0) } }

  /// Numbers up and down, other tips, and replicas that there never were.
  private mutating func spoiled(_ item: PartitionVector) -> PartitionVector {
    var vector = VersionVector()
    for (replica, position) in item.vector.sorted {
      let sequence = random.chance(50) ? position.sequence &+ random.next() % 3 : max(1, position.sequence / 2)
      let tip = random.chance(50) ? position.tip : TipHash(high: random.next(), low: random.next())
      vector[replica] = random.chance(15) ? nil : ChainPosition(sequence: max(1, sequence), tip: tip)
    }
    if random.chance(20) {
      vector[ReplicaID(high: random.next(), low: random.next())] = ChainPosition(
        sequence: 1 + random.next() % 9, tip: TipHash(high: random.next(), low: random.next()))
    }
    return PartitionVector(name: item.name, vector: vector)
  }

  /// A run with a byte turned, held back, twice, with a context that is not its own, or out of its order.
  private mutating func spoiled(_ batch: RunBatch, _ frame: [UInt8]) -> [UInt8] {
    var entries = batch.entries
    guard !entries.isEmpty else { return frame }
    let index = random.below(entries.count)
    switch random.below(5) {
    case 0:
      var bytes = Array(entries[index].encoded)
      bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
      entries[index] = RunBatch.Entry(context: entries[index].context, encoded: bytes[...])
    case 1: entries.remove(at: index)
    case 2: entries.insert(entries[index], at: index)
    case 3: entries[index] = RunBatch.Entry(context: .full(VersionVector()), encoded: entries[index].encoded)
    default: entries.swapAt(index, 0)
    }
    let spoiled = RunBatch(
      name: batch.name, stream: batch.stream, entries: entries,
      isForkEvidence: random.chance(10) != batch.isForkEvidence)
    return MessageCodec.encode(.runs(spoiled))
  }
}
