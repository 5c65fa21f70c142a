import Engine
import Replication
import Wire

/// A member that lies. Every field that nobody signed may be anything; what others signed it garbles, holds back, repeats,
/// sends where it does not belong, or passes off under a signature of its own; and it signs what is not so.
struct Liar {
  private var random: SimulationRandom
  private let key: FakeKey
  /// What it said or passed on before, to whomever.
  private var earlier: [[UInt8]] = []
  /// Beginnings of payloads that it has passed on, with other bytes in their place.
  private var poison: [PayloadPiece] = []

  private static let earlierLimit = 16
  /// Lies beget answers, which beget lies: enough of them to meet every guard.
  private static let lieLimit = 150
  private var lieCount = 0
  /// Of the peers' own chains it claims more far oftener: each claim is one entry that nobody signs.
  private static let boastLimit = 400
  private var boastCount = 0
  /// It draws apart, so that all else is what it was.
  private var slyness: Slyness

  init(_ key: FakeKey, _ random: SimulationRandom) {
    (self.key, self.random) = (key, random)
    slyness = Slyness(key)
  }

  /// What goes on the wire instead, to this peer.
  mutating func spoil(_ frame: [UInt8], to peer: SimulatedNode, in world: World) -> [[UInt8]] {
    guard let message = try? MessageCodec.decode(frame[...]) else { return [frame] }
    let boast = boast(beside: message, to: peer, world).map { [MessageCodec.encode($0)] } ?? []
    if case .runs(let batch) = message, let unseeing = slyness.unseeing(batch, world) {
      return [MessageCodec.encode(.runs(unseeing))] + boast
    }
    return spoiled(message, frame, world) + boast
  }

  /// More of the peer's own chain than it has written, or something else, beside what is taken on a live session alone.
  private mutating func boast(beside message: Message, to peer: SimulatedNode, _ world: World) -> Message? {
    switch message {
    case .have, .pull, .runs, .vectors: break
    default: return nil
    }
    guard boastCount < Liar.boastLimit, random.chance(30), let own = peer.process?.engine.state.own,
      let replica = own.replica?.id, let name = random.pick(world.plan.partitions)
    else { return nil }
    boastCount += 1
    world.count(.boast)
    slyness.bother(peer, world)
    let end = peer.process?.mesh.partitions[world.fleet.partition(name)]?.log.received.sequence(of: replica) ?? 0
    let claimed = ChainPosition(
      sequence: max(1, end + random.next() % 3), tip: TipHash(high: random.next(), low: random.next()))
    return .have(PartitionVector(name: name, vector: VersionVector([replica: claimed])))
  }

  private mutating func spoiled(_ message: Message, _ frame: [UInt8], _ world: World) -> [[UInt8]] {
    let replayed = random.chance(3) ? random.pick(earlier) : nil
    remember(message, frame)
    guard lieCount < Liar.lieLimit, replayed != nil || random.chance(30) else { return [frame] }
    lieCount += 1
    world.count(.lie)
    if let replayed { return [frame, replayed] }
    return lies(message, frame, world).map { MessageCodec.encode($0) }
  }

  /// Greetings belong to one connection.
  private mutating func remember(_ message: Message, _ frame: [UInt8]) {
    switch message {
    case .hello, .joinRequest, .goodbye: return
    case .payloadPiece(let piece) where piece.offset == 0 && poison.count < Liar.earlierLimit:
      poison.append(spoiled(piece))
    default: break
    }
    if earlier.count == Liar.earlierLimit { earlier.remove(at: random.below(earlier.count)) }
    earlier.append(frame)
  }

  private mutating func lies(_ message: Message, _ frame: [UInt8], _ world: World) -> [Message] {
    switch message {
    case .have, .pull:
      // Ahead of whatever an honest peer sends of the same payload.
      if random.chance(30), let piece = random.pick(poison) { return [.payloadPiece(piece), message] }
      return [spoiledWords(message, world)]
    case .vectors(let vectors): return [.vectors(vectors.map { spoiled($0, world) })]
    case .runs(let batch): return [.runs(spoiled(batch, world))]
    case .payloadPiece(let piece) where random.chance(60): return [.payloadPiece(misplaced(piece, world))]
    case .statements(let list, let scope): return [.statements(spoiled(list, world), of: scope)]
    case .statementSet(let set) where random.chance(30): return [.statementSet(spoiled(set))]
    case .summary(let summary) where random.chance(30): return [.summary(spoiled(summary))]
    // Who is told to push thinks that another does, and the other way round.
    case .pushChoice(let choice) where random.chance(50):
      return [.pushChoice(PushChoice(choice.name, eager: choice.lazy, lazy: choice.eager, released: choice.released))]
    case .interest, .summary, .statementSet, .payloadPiece, .chainProbe, .interestChange:
      return random.chance(50) ? [] : [message, message]
    case .ping(let nonce):
      return random.chance(5) ? [.goodbye(random.pick(Goodbye.allCases) ?? .stopping)] : [.pong(nonce: nonce &+ 1)]
    default: return [message]
    }
  }

  // MARK: Vectors and pieces

  private mutating func spoiledWords(_ message: Message, _ world: World) -> Message {
    switch message {
    case .have(let vector): return .have(spoiled(vector, world))
    case .pull(let stream, let vector):
      return .pull(stream: random.chance(20) ? random.next() % 8 : stream, spoiled(vector, world))
    default: return message
    }
  }

  /// Numbers up and down, other tips, replicas that there never were, and partitions that the peer may not know of.
  private mutating func spoiled(_ item: PartitionVector, _ world: World) -> PartitionVector {
    let name = random.chance(10) ? random.pick(world.plan.partitions) ?? item.name : item.name
    return PartitionVector(
      name: name, vector: spoiled(item.vector), hasMore: random.chance(5) != item.hasMore, staged: item.staged,
      base: item.base)
  }

  /// Any step of a comparison, in answer to whatever was asked.
  private mutating func spoiled(_ summary: Summary) -> Summary {
    func words(_ count: Int) -> [UInt64] { (0..<count).map { _ in random.next() } }
    let number = random.chance(20) ? random.next() : summary.number
    let listing = BucketListing(
      bucket: random.below(Summary.bucketCount),
      entries: zip(words(3), words(3)).map { BucketListing.Entry(prefix: $0, term: $1) })
    switch random.below(5) {
    case 0: return Summary(number, .digest(random.next()))
    case 1: return Summary(number, .equal)
    case 2: return Summary(number, .buckets(words(Summary.bucketCount)))
    case 3: return Summary(number, .partitions(equal: random.next(), [listing]))
    default: return Summary(number, .differing(words(3)))
    }
  }

  /// Tips that there never were, and of others' chains none.
  private mutating func spoiled(_ set: StatementSet) -> StatementSet {
    func spoiled(_ list: [IssuerTips]) -> [IssuerTips] {
      list.map { item in
        switch random.below(3) {
        case 0: IssuerTips(issuer: item.issuer, tips: [])
        case 1:
          IssuerTips(
            issuer: item.issuer,
            tips: [StatementTip(sequence: random.next() % 9, id: TipHash(high: random.next(), low: random.next()))])
        default: item
        }
      }
    }
    switch set.step {
    case .buckets(let buckets): return StatementSet(scope: set.scope, .buckets(buckets.map { _ in random.next() }))
    case .tips(let listed, let list):
      return StatementSet(scope: set.scope, .tips(listed: random.chance(50) ? listed : random.next(), spoiled(list)))
    case .wanted(let list): return StatementSet(scope: set.scope, .wanted(spoiled(list)))
    }
  }

  private mutating func spoiled(_ vector: VersionVector) -> VersionVector {
    var spoiled = VersionVector()
    for (replica, position) in vector.sorted {
      let sequence = random.chance(50) ? position.sequence &+ random.next() % 3 : max(1, position.sequence / 2)
      let tip = random.chance(50) ? position.tip : TipHash(high: random.next(), low: random.next())
      spoiled[replica] = random.chance(15) ? nil : ChainPosition(sequence: max(1, sequence), tip: tip)
    }
    if random.chance(20) {
      spoiled[ReplicaID(high: random.next(), low: random.next())] = ChainPosition(
        sequence: 1 + random.next() % 9, tip: TipHash(high: random.next(), low: random.next()))
    }
    return spoiled
  }

  private mutating func spoiled(_ piece: PayloadPiece) -> PayloadPiece {
    var bytes = Array(piece.bytes)
    flipBit(of: &bytes)
    return PayloadPiece(
      name: piece.name, stream: PayloadPiece.evidence, hash: piece.hash, total: piece.total, offset: piece.offset,
      bytes: bytes[...])
  }

  /// Other bytes, or the same ones of another payload, partition, stream or place.
  private mutating func misplaced(_ piece: PayloadPiece, _ world: World) -> PayloadPiece {
    var (name, stream, hash, offset, bytes) = (piece.name, piece.stream, piece.hash, piece.offset, Array(piece.bytes))
    switch random.below(6) {
    case 0: name = random.pick(world.plan.partitions) ?? name
    case 1: stream = random.next() % 8
    case 2: hash = Digest.of(hash.bytes, FakeCryptography.hash)
    case 3: offset /= 2
    default: flipBit(of: &bytes)
    }
    return PayloadPiece(name: name, stream: stream, hash: hash, total: piece.total, offset: offset, bytes: bytes[...])
  }

  private mutating func flipBit(of bytes: inout [UInt8]) {
    if !bytes.isEmpty { bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8)) }
  }

  // MARK: Runs

  private mutating func spoiled(_ batch: RunBatch, _ world: World) -> RunBatch {
    var (entries, name) = (batch.entries, batch.name)
    let index = random.below(max(1, entries.count))
    guard index < entries.count else { return batch }
    let entry = entries[index]
    switch random.below(8) {
    case 0:
      var bytes = Array(entry.encoded)
      flipBit(of: &bytes)
      entries[index] = RunBatch.Entry(context: entry.context, encoded: bytes[...])
    case 1: entries.remove(at: index)
    case 2: entries.insert(entry, at: index)
    case 3: entries[index] = RunBatch.Entry(context: .full(VersionVector()), encoded: entry.encoded)
    case 4: entries.swapAt(index, 0)
    case 5: name = random.pick(world.plan.partitions) ?? name
    default: entries[index] = signedAnew(entry, batch.name, world)
    }
    return RunBatch(
      name: name, stream: batch.stream, entries: entries, isForkEvidence: random.chance(10) != batch.isForkEvidence)
  }

  /// The same changes under this device's signature. Of its own chain they are then valid, with a context that names
  /// what nobody wrote; of another's they are forged.
  private mutating func signedAnew(_ entry: RunBatch.Entry, _ name: PartitionName, _ world: World) -> RunBatch.Entry {
    guard
      let run = try? RunCodec.decode(
        entry.encoded, fleet: world.fleet.id, partition: world.fleet.partition(name), hash: FakeCryptography.hash)
    else { return entry }
    let claimed = random.chance(20) ? VersionVector() : spoiled(entry.context.resolved(on: nil))
    return key.sign(entry, of: run, under: claimed)
  }

  // MARK: Statements

  /// A grant to itself, a membership that it has no right to sign, another's words under a broken signature, or nothing.
  private mutating func spoiled(_ list: [[UInt8]], _ world: World) -> [[UInt8]] {
    var list = list
    switch random.below(4) {
    case 0:
      let grant = Statement.Grant(subject: .device(key.publicKey), level: .manage, pattern: "*")
      if let forged = key.statement(world.fleet.id, .grant(grant)) {
        list.append(forged.encoded)
      }
    case 1:
      let membership = Statement.Membership(
        device: key.publicKey, user: "u0", label: "liar", role: "admin", profile: ValueMap())
      if let forged = key.statement(world.fleet.id, .membership(membership)) {
        list.append(forged.encoded)
      }
    case 2:
      if !list.isEmpty { flipBit(of: &list[random.below(list.count)]) }
    default: list = []
    }
    return list
  }
}
