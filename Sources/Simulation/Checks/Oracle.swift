import Replication
import Wire

/// What an onlooker who sees everything knows: written beside the nodes, read by no node.
final class Oracle {
  unowned let world: World

  /// One change, decoded once for all checks.
  struct Item {
    let dot: Dot
    let hash: Digest
    let timestamp: HybridTimestamp
    let context: VersionVector
    let writes: [DocumentWrite]
  }

  struct Place: Hashable {
    let partition: PartitionID
    let dot: Dot
  }

  /// A write that somebody was told is safe.
  struct Acknowledged {
    let partition: PartitionID
    let dot: Dot
    let hash: Digest
    let slot: Int
    let lineage: Int
    /// The run destroyed its only holder.
    var isExcused = false
  }

  struct Deletion {
    let dot: Dot
    let hash: Digest
    let context: VersionVector
    let generation: UInt64
  }

  struct Source {
    let dot: Dot
    let hash: Digest
    let generation: UInt64
  }

  struct DocumentPlace: Hashable {
    let partition: PartitionID
    let key: DocumentKey
  }

  struct Vectors {
    var received: VersionVector
    var accepted: VersionVector
  }

  private var items: [Digest: [Item]] = [:]
  /// Runs that were committed anywhere, by their last hash.
  private var known: Set<Digest> = []
  private var hashes: [Place: Digest] = [:]
  var acknowledged: [Acknowledged] = []
  /// Jobs acknowledged before their time, and not committed yet.
  var early: [Int: String] = [:]
  var deletions: [DocumentPlace: [Deletion]] = [:]
  var sourcesOfValue: [Int64: [Source]] = [:]
  /// By slot: what a life of the store showed last.
  var vectors: [Int: [PartitionID: Vectors]] = [:]
  /// Devices of which the run made two, and the replicas that they write under.
  private var forkable: Set<PublicKey> = []
  private var owners: [ReplicaID: PublicKey] = [:]

  init(_ world: World) { self.world = world }

  var changeCount: Int { hashes.count }

  func expectForks(of node: SimulatedNode) { forkable.insert(node.key.publicKey) }
  func mayFork(_ replica: ReplicaID) -> Bool { owners[replica].map(forkable.contains) ?? false }

  /// The changes of a stored run.
  func contents(of run: ModelDisk.StoredRun, in partition: PartitionID) -> [Item] {
    contents(run.body, run.context, hashAtLast: run.hashAtLast, partition)
  }

  func contents(
    _ body: ArraySlice<UInt8>, _ context: VersionVector, hashAtLast: Digest, _ partition: PartitionID
  ) -> [Item] {
    if let known = items[hashAtLast] { return known }
    guard
      let run = try? RunCodec.decode(body, fleet: world.fleet.id, partition: partition, hash: FakeCryptography.hash)
    else { return [] }
    let found = zip(run.changes, run.hashes).map { change, hash in
      let dot = Dot(replica: run.chain.replica, sequence: change.header.sequence)
      return Item(
        dot: dot, hash: hash, timestamp: change.header.timestamp, context: context,
        writes: (try? PayloadDecoder.decodeWrites(change.payload, dot: dot)) ?? [])
    }
    items[hashAtLast] = found
    return found
  }

  // MARK: Acknowledgements

  func acknowledgeEarly(_ job: WriteJob, by process: NodeProcess) {
    early[job.number] = "node \(process.node.slot), \(job.partition.text.string)"
  }

  func acknowledge(_ job: WriteJob, _ dot: Dot?, by process: NodeProcess) {
    guard !process.isDead else { return }
    early[job.number] = nil
    let partition = world.fleet.partition(job.partition)
    guard let dot, let item = stored(dot, partition, process.node.disk.image) else { return }
    acknowledged.append(
      Acknowledged(
        partition: partition, dot: dot, hash: item.hash, slot: process.node.slot, lineage: process.node.lineage))
  }

  /// What came last under this dot.
  private func stored(_ dot: Dot, _ partition: PartitionID, _ image: ModelDisk.Image) -> Item? {
    let runs = image.partitions[partition]?.chains[dot.replica]?.runs ?? []
    return runs.last { $0.first <= dot.sequence && dot.sequence <= $0.last }
      .flatMap { contents(of: $0, in: partition).first { $0.dot == dot } }
  }

  func holds(_ write: Acknowledged, _ image: ModelDisk.Image) -> Bool {
    holds(write.hash, write.dot, write.partition, image)
  }

  func holds(_ hash: Digest, _ dot: Dot, _ partition: PartitionID, _ image: ModelDisk.Image) -> Bool {
    (image.partitions[partition]?.chains[dot.replica]?.runs ?? []).contains { run in
      run.first <= dot.sequence && dot.sequence <= run.last
        && contents(of: run, in: partition).contains { $0.hash == hash }
    }
  }

  /// An older copy takes the place of a store: what it alone held is gone, and nobody's fault.
  func storeIsLost(of node: SimulatedNode, to older: ModelDisk.Image) {
    vectors[node.slot] = nil
    let others = world.nodes.filter { $0.slot != node.slot }
    for index in acknowledged.indices where !acknowledged[index].isExcused {
      let write = acknowledged[index]
      guard holds(write, node.disk.synced), !holds(write, older),
        !others.contains(where: { holds(write, $0.disk.synced) })
      else { continue }
      acknowledged[index].isExcused = true
      world.count(.excusedLoss)
    }
  }

  // MARK: Knowing runs

  func learn(
    _ run: LoggedRun, hashAtLast: Digest, in partition: PartitionID, by process: NodeProcess, isOwn: Bool
  ) {
    if isOwn { owners[run.replica] = process.node.key.publicKey }
    guard known.insert(hashAtLast).inserted else { return }
    for item in contents(run.encoded, run.context, hashAtLast: hashAtLast, partition) {
      let place = Place(partition: partition, dot: item.dot)
      if hashes[place] != nil, !mayFork(item.dot.replica) {
        world.violate("I6", "change \(item.dot.sequence) of \(item.dot.replica) has two hashes")
      }
      hashes[place] = item.hash
      index(item, partition)
    }
  }

  private func index(_ item: Item, _ partition: PartitionID) {
    for write in item.writes {
      if write.kind == .delete {
        deletions[DocumentPlace(partition: partition, key: DocumentKey(write)), default: []]
          .append(
            Deletion(dot: item.dot, hash: item.hash, context: item.context, generation: write.generation))
      }
      for operation in write.operations {
        for value in operation.value?.uniqueValues ?? [] {
          sourcesOfValue[value, default: []].append(
            Source(dot: item.dot, hash: item.hash, generation: write.generation))
        }
      }
    }
  }
}

extension Value {
  /// The numbers in it that a run gives once.
  var uniqueValues: [Int64] {
    switch self {
    case .int(let number): number >= DocumentAuthor.firstUniqueValue ? [number] : []
    case .map(let map): map.entries.flatMap(\.value.uniqueValues)
    case .array(let items): items.flatMap(\.uniqueValues)
    default: []
    }
  }
}
