import Engine
import Identity
import Replication
import Wire

/// One call within a transaction, with its answer in a form that two stores must have in common.
struct EquivalenceStep {
  let name: String
  let run: (any LogTransaction) throws -> AnyHashable

  init(_ name: String, _ run: @escaping (any LogTransaction) throws -> AnyHashable) {
    (self.name, self.run) = (name, run)
  }

  /// A call without an answer.
  init(writing name: String, _ run: @escaping (any LogTransaction) throws -> Void) {
    self.init(name) {
      try run($0)
      return true
    }
  }
}

/// What ends a transaction from outside of the store.
struct Interruption: Error {}

extension EquivalenceWorld {
  /// The calls of one transaction. Questions stand between the writes.
  mutating func plan(writes count: Int) throws -> [EquivalenceStep] {
    var steps: [EquivalenceStep] = []
    for _ in 0..<count {
      steps += try writingSteps()
      if chance(3) { steps.append(question()) }
    }
    return steps
  }

  private mutating func writingSteps() throws -> [EquivalenceStep] {
    switch number(0..<16) {
    case 0...3: try appendSteps()
    case 4...6: foldSteps()
    case 7: rebuildSteps()
    case 8, 9: try localSteps()
    case 10: [looseStep()]
    case 11: payloadSteps()
    case 12: partitionSteps()
    case 13: markSteps()
    default: [factStep()]
    }
  }

  // MARK: Runs

  private mutating func place() -> (partition: Int, replica: ReplicaID) {
    (number(0..<partitions.count), EquivalenceWorld.replicas[number(0..<EquivalenceWorld.replicas.count)])
  }

  private mutating func appendSteps() throws -> [EquivalenceStep] {
    let (index, replica) = place()
    let id = ChainIdentity(fleet: EquivalenceWorld.fleet, partition: partitions[index].id, replica: replica)
    var chain = partitions[index].chains[replica] ?? Chain()
    let isFork = !chain.trunk.isEmpty && chance(4)
    let kept = isFork ? number(0..<chain.trunk.count) : chain.trunk.count
    let base = chain.trunk.prefix(kept).last
    let run = try build(id, after: base, changes: number(1..<4), isLarge: chance(12))
    if isFork && chance(2) {
      chain.lost.append(run)
    } else {
      if isFork {
        chain.lost += chain.trunk[kept...]
        if chain.accepted > base?.last ?? 0 { partitions[index].mustRebuild = true }
        chain.accepted = min(chain.accepted, base?.last ?? 0)
      }
      chain.trunk = chain.trunk.prefix(kept) + [run]
    }
    partitions[index].chains[replica] = chain
    return EquivalenceWorld.appending(run)
  }

  private static func appending(_ run: BuiltRun) -> [EquivalenceStep] {
    var steps = [
      EquivalenceStep("append \(run.first)-\(run.last)") {
        try $0.append(run.appended, to: run.chain, genesis: run.chain.genesis(SHA256.hash))
      }
    ]
    if let payload = run.documents.apart {
      steps.append(EquivalenceStep(writing: "large payload") { try $0.addLargePayload(payload) })
    }
    return steps
  }

  private mutating func foldSteps() -> [EquivalenceStep] {
    var runs: [AcceptedRun] = []
    for _ in 0..<number(1..<5) {
      let (index, replica) = place()
      guard !partitions[index].mustRebuild, let run = partitions[index].chains[replica]?.next else { continue }
      partitions[index].chains[replica]?.accepted = run.last
      runs.append(run.accepted(under: sight()))
    }
    return [EquivalenceStep("fold \(runs.count)") { [runs] in ChangedAnswer(try $0.fold(runs)) }]
  }

  private mutating func rebuildSteps() -> [EquivalenceStep] {
    let index = number(0..<partitions.count)
    var keys = partitions[index].touched
    if partitions[index].mustRebuild || chance(2) {
      for replica in partitions[index].chains.keys.sorted() {
        let end = Int(partitions[index].chains[replica]?.end ?? 0)
        let accepted = chance(3) ? number(0..<end + 1) : end
        partitions[index].chains[replica]?.accepted = UInt64(accepted)
      }
      partitions[index].mustRebuild = false
    } else {
      keys = keys.filter { _ in chance(2) }
    }
    if chance(2), let gone = partitions[index].loose.sorted().first {
      partitions[index].loose.remove(gone)
      keys.insert(gone)
    }
    if chance(3) { keys.insert(DocumentKey(collection: "never", id: .int(1))) }
    let partition = partitions[index]
    let (counted, sight) = (Set(partition.chains.values.flatMap(\.countedHashes)), sight())
    let rebuilding = Rebuilding(
      partition: partition.id, fleet: EquivalenceWorld.fleet, hash: SHA256.hash, accepted: partition.accepted
    ) { replica, header, hash, context in
      guard counted.contains(hash) else { return nil }
      return WriteContext(
        dot: Dot(replica: replica, sequence: header.sequence), timestamp: header.timestamp, context: context,
        sight: sight)
    }
    return [EquivalenceStep("rebuild \(keys.count)") { [keys] in ChangedAnswer(try $0.rebuild(keys, by: rebuilding)) }]
  }

  // MARK: Documents

  /// An own write: its run goes into the log, and the state that it makes straight into the document.
  private mutating func localSteps() throws -> [EquivalenceStep] {
    let (index, replica) = place()
    var chain = partitions[index].chains[replica] ?? Chain()
    guard !partitions[index].mustRebuild, chain.accepted == chain.end else { return [] }
    let id = ChainIdentity(fleet: EquivalenceWorld.fleet, partition: partitions[index].id, replica: replica)
    let run = try build(id, after: chain.trunk.last, changes: 1, isLarge: false)
    chain.trunk.append(run)
    chain.accepted = run.last
    partitions[index].chains[replica] = chain
    return EquivalenceWorld.appending(run) + [
      EquivalenceStep(writing: "own write") { try EquivalenceWorld.write(run, $0) }
    ]
  }

  private static func write(_ run: BuiltRun, _ transaction: any LogTransaction) throws {
    let buffer = run.documents.buffer
    for placed in run.documents.writes {
      let context = WriteContext(
        dot: Dot(replica: run.chain.replica, sequence: placed.sequence), timestamp: placed.timestamp,
        context: run.context)
      let write = DocumentWrite(
        collection: placed.view.collection(in: buffer), id: try placed.view.id(in: buffer), kind: placed.view.kind,
        generation: placed.view.generation,
        operations: try PayloadDecoder.decodeOperations(buffer[placed.view.operations], dot: context.dot))
      let key = DocumentKey(collection: write.collection, id: write.id)
      let old = try transaction.document(key, in: run.chain.partition)
      var state = DocumentState()
      if let old {
        let stored = try DocumentStateCodec.decode(old.state[...])
        state = DocumentState(generation: stored.generation, groups: stored.groups)
      }
      state.apply(AcceptedWrite(context, write))
      try transaction.store(LogDocument(state), over: old, as: key, in: run.chain.partition)
    }
  }

  private mutating func looseStep() -> EquivalenceStep {
    let index = number(0..<partitions.count)
    let key = DocumentKey(collection: "loose", id: .int(Int64(number(0..<3))))
    let (id, new) = (partitions[index].id, LogDocument(looseState()))
    partitions[index].loose.insert(key)
    return EquivalenceStep(writing: "store") { transaction in
      try transaction.store(new, over: try transaction.document(key, in: id), as: key, in: id)
    }
  }

  // MARK: What must be refused

  /// Nil where there is nothing to break.
  mutating func refusedStep() -> EquivalenceStep? {
    let (index, replica) = place()
    let id = ChainIdentity(fleet: EquivalenceWorld.fleet, partition: partitions[index].id, replica: replica)
    let (huge, hash) = (UInt64.max - UInt64(number(0..<3)), EquivalenceWorld.digest(5))
    switch number(0..<5) {
    case 0:
      let first = chance(2) ? 1 : huge
      let run = AppendedRun(first: first, last: huge, context: VersionVector(), body: [])
      return EquivalenceStep("append beyond range") { try $0.append(run, to: id, genesis: hash) }
    case 1:
      guard partitions[index].chains[replica] != nil else { return nil }
      let mark = Engine.ChainMark(sequence: huge, hash: hash)
      return EquivalenceStep(writing: "marks beyond range") {
        try $0.setMarks(ChainMarks(received: mark, accepted: mark, isForked: false), of: id)
      }
    case 2:
      let origin = ChangeOrigin(dot: Dot(replica: replica, sequence: huge), hash: hash)
      let reissue = Reissue(dot: Dot(replica: replica, sequence: 1), hash: EquivalenceWorld.digest(77), origin: origin)
      return EquivalenceStep(writing: "reissue beyond range") { try $0.add(reissue, in: id.partition) }
    case 3:
      guard let key = partitions[index].loose.sorted().first else { return nil }
      let new = LogDocument(looseState())
      return EquivalenceStep(writing: "store over what was not found") {
        try $0.store(new, over: nil, as: key, in: id.partition)
      }
    default: return EquivalenceStep("interruption") { _ in throw Interruption() }
    }
  }
}

extension LogDocument {
  fileprivate init(_ state: DocumentState) {
    self.init(
      isAlive: state.isAlive, state: DocumentStateCodec.encode(generation: state.generation, groups: state.groups))
  }
}

/// ``ChangedDocuments`` as far as it can be seen.
struct ChangedAnswer: Hashable {
  struct Item: Hashable {
    let place: ChangedDocuments.Place
    let id: [UInt8]
  }

  let items: [Item]
  let count: Int
  let keyByteCount: Int

  init(_ changed: ChangedDocuments) {
    var items: [Item] = []
    changed.forEach { items.append(Item(place: $0, id: Array($1))) }
    (self.items, count, keyByteCount) = (items, changed.count, changed.keyByteCount)
  }
}
