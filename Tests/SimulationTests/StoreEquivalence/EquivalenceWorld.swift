import Engine
import Identity
import Replication
import TestSupport
import Wire

/// What a random sequence of calls knows of what it has had written: enough to draw calls that an engine could make.
struct EquivalenceWorld {
  static let fleet = FleetID(digest(1))
  static let replicas = (1...3).map { ReplicaID(high: $0, low: 99) }

  /// One run with what its changes write.
  struct BuiltRun {
    let chain: ChainIdentity
    let first: UInt64
    let hashes: [Digest]
    let context: VersionVector
    let body: [UInt8]
    let documents: RunDocuments
    /// Of each change.
    let keys: [[DocumentKey]]

    var last: UInt64 { first + UInt64(hashes.count) - 1 }
    var hashAtLast: Digest { hashes[hashes.count - 1] }
    var appended: AppendedRun { AppendedRun(first: first, last: last, context: context, body: body[...]) }
    func accepted(under sight: Sight) -> AcceptedRun {
      AcceptedRun(
        partition: chain.partition, replica: chain.replica, context: context, sight: sight, documents: documents)
    }
  }

  struct Chain {
    /// The branch that counts, from its first run on.
    var trunk: [BuiltRun] = []
    /// On other branches.
    var lost: [BuiltRun] = []
    /// How far it is carried into documents.
    var accepted: UInt64 = 0

    /// Of all branches, in the order in which the log answers them.
    var bodySizes: [Int] { (trunk + lost).sorted { $0.last < $1.last }.map(\.body.count) }
    /// What can be folded in next.
    var next: BuiltRun? { trunk.first { $0.first == accepted + 1 } }
    var end: UInt64 { trunk.last?.last ?? 0 }
    var countedHashes: [Digest] {
      trunk.flatMap { run in run.hashes.enumerated().filter { run.first + UInt64($0.offset) <= accepted }.map(\.element)
      }
    }
  }

  struct Partition {
    let name: PartitionName
    let id: PartitionID
    var chains: [ReplicaID: Chain] = [:]
    /// The accepted prefix of a chain has fallen, and documents have not followed yet.
    var mustRebuild = false
    /// Documents of which the log knows nothing.
    var loose: Set<DocumentKey> = []

    init(_ name: PartitionName) {
      (self.name, id) = (name, name.id(fleet: EquivalenceWorld.fleet, hash: SHA256.hash))
    }

    var touched: Set<DocumentKey> {
      Set(chains.values.flatMap { ($0.trunk + $0.lost).flatMap { $0.keys.joined() } })
    }
    var accepted: VersionVector {
      VersionVector(chains.mapValues { ChainPosition(sequence: $0.accepted, tip: .zero) })
    }
  }

  var random: SplitMix64
  var partitions: [Partition]
  private var clock: UInt64 = 1_000
  private var looseDots: UInt64 = 0

  init(seed: UInt64) throws {
    random = SplitMix64(seed: seed)
    partitions = try ["agency=A", "agency=B", "c"].map { Partition(try PartitionName($0)) }
  }

  mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }
  mutating func chance(_ outOf: Int) -> Bool { number(0..<outOf) == 0 }

  static func digest(_ number: UInt64) -> Digest { Digest(words: (number, number &* 31, 7, 11)) }

  // MARK: Runs

  /// Goes on behind `base` (nil: from the beginning of the chain).
  mutating func build(
    _ chain: ChainIdentity, after base: BuiltRun?, changes count: Int, isLarge: Bool
  ) throws -> BuiltRun {
    let context = context(without: chain.replica)
    var builder = RunBuilder(
      chain: chain, after: base?.last ?? 0, hashBefore: base?.hashAtLast ?? chain.genesis(SHA256.hash),
      context: context, hash: SHA256.hash)
    var keys: [[DocumentKey]] = []
    for _ in 0..<(isLarge ? 1 : count) {
      clock += UInt64(number(0..<3))
      let writes = PayloadEncoder.sorted(writes(padding: isLarge ? Run.inlinePayloadByteLimit + 1 : 0))
      let written = writes.map { DocumentKey(collection: $0.collection, id: $0.id) }
      keys.append(written)
      builder.append(
        payload: PayloadEncoder.encode(writes, dot: builder.nextDot),
        keyHashes: written.map { $0.hash(in: chain.partition, SHA256.hash) },
        timestamp: HybridTimestamp(milliseconds: clock, counter: 0), wall: WallTime(milliseconds: 1))
    }
    let none = try unwrapped(Signature([UInt8](repeating: 0, count: Signature.byteCount)))
    let run = builder.close { _ in none }
    let body = RunCodec.encode(run)
    return BuiltRun(
      chain: chain, first: run.record.first, hashes: run.hashes, context: context, body: body,
      documents: try EquivalenceWorld.documents(of: run, body), keys: keys)
  }

  private mutating func context(without own: ReplicaID) -> VersionVector {
    var context = VersionVector()
    for replica in EquivalenceWorld.replicas where replica != own && !chance(3) {
      context[replica] = ChainPosition(sequence: UInt64(number(1..<9)), tip: TipHash(high: 1, low: 2))
    }
    // Long ones with few differences are kept as those.
    if chance(2) {
      for other in 0..<UInt64(4) {
        context[ReplicaID(high: 100 + other, low: 0)] = ChainPosition(sequence: 7, tip: TipHash(high: 3, low: other))
      }
    }
    return context
  }

  private static func documents(of run: Run, _ body: [UInt8]) throws -> RunDocuments {
    let chain = run.record.chain
    let decoded = try RunCodec.decode(body[...], fleet: chain.fleet, partition: chain.partition, hash: SHA256.hash)
    var writes: [PlacedWrite] = []
    var (buffer, apart): (ArraySlice<UInt8>, ApartPayload?) = (body[...], nil)
    for (index, change) in decoded.changes.enumerated() {
      let scan: PayloadScan
      if case .documents(let found) = decoded.contents[index] {
        scan = found
      } else {
        buffer = run.changes[index].payload
        scan = try RunCodec.scanApart(
          buffer, of: change.header, at: Dot(replica: chain.replica, sequence: change.header.sequence),
          partition: chain.partition, hash: SHA256.hash)
        apart = ApartPayload(hash: change.header.payloadHash, bytes: buffer)
      }
      writes += scan.documents.map {
        PlacedWrite(sequence: change.header.sequence, timestamp: change.header.timestamp, view: $0)
      }
    }
    return RunDocuments(writes: writes, buffer: buffer, apart: apart)
  }

  // MARK: Writes

  private mutating func writes(padding: Int) -> [DocumentWrite] {
    let ids = Set((0..<number(1..<4)).map { _ in Int64(number(-2..<5)) })
    return ids.sorted().map { id in
      let kind = DocumentWrite.Kind(rawValue: UInt8([0, 0, 1, 1, 1, 2][number(0..<6)])) ?? .edit
      let generation = UInt64(number(0..<2)) * 2 + (kind == .delete ? 2 : 1)
      return DocumentWrite(
        collection: id % 2 == 0 ? "boats" : "reports", id: id < 0 ? .string(Text("\(id)")) : .int(id), kind: kind,
        generation: generation, operations: kind == .delete ? [] : operations(padding: padding))
    }
  }

  private mutating func operations(padding: Int) -> [Operation] {
    var operations = [Operation(.set, [.key("name")], value: .int(Int64(number(0..<100))))]
    if padding > 0 {
      operations.append(Operation(.set, [.key("padding")], value: .bytes([UInt8](repeating: 1, count: padding))))
    }
    switch number(0..<6) {
    case 5:
      let element = ListElement(position: [0x40], dot: EquivalenceWorld.elsewhere)
      operations.append(Operation(.set, [.key("list"), .element(element)], value: .string("edited")))
    case 0: operations.append(Operation(.increment, [.key("count")], value: .int(3)))
    case 1: operations.append(Operation(.remove, [.key("gone")]))
    case 2: operations.append(Operation(.setAdd, [.key("tags")], value: .int(Int64(number(0..<4)))))
    case 3: operations.append(Operation(.setRemove, [.key("tags")], value: .int(1)))
    default: operations.append(Operation(.listInsert, [.key("list")], value: .bool(true), position: [0x40]))
    }
    return operations
  }

  /// The insert of a list's element that is not in the log.
  private static let elsewhere = Dot(replica: ReplicaID(high: 50, low: 99), sequence: 1)

  /// Seldom other than plain: then one of the changes is that insert's re-issue.
  mutating func sight() -> Sight {
    guard chance(3) else { return .plain }
    let replica = EquivalenceWorld.replicas[number(0..<EquivalenceWorld.replicas.count)]
    let again = Dot(replica: replica, sequence: UInt64(number(1..<4)))
    let elsewhere = EquivalenceWorld.elsewhere
    return Sight(kin: KinTable([Kin(original: elsewhere, reissues: [again], effective: again)]))
  }

  /// A write of which the log knows nothing.
  mutating func looseState() -> DocumentState {
    looseDots += 1
    clock += 1
    let kind: DocumentWrite.Kind = chance(3) ? .delete : .create
    let context = WriteContext(
      dot: Dot(replica: ReplicaID(high: 9, low: 9), sequence: looseDots),
      timestamp: HybridTimestamp(milliseconds: clock, counter: 0), context: VersionVector())
    let write = DocumentWrite(
      collection: "loose", id: .int(0), kind: kind, generation: kind == .delete ? 2 : 1,
      operations: kind == .delete ? [] : operations(padding: 0))
    return DocumentState.merged(of: [AcceptedWrite(context, write)])
  }
}

struct MissingValue: Error {}

func unwrapped<Value>(_ value: Value?) throws -> Value {
  guard let value else { throw MissingValue() }
  return value
}
