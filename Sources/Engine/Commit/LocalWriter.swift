import Replication
import Wire

/// Turns requests into changes and changes into signed runs, within one transaction.
///
/// A partition, a subscription to it and a replica id come into being with the first change that needs them, never with
/// a request that is refused.
struct LocalWriter {
  private let state: EngineState
  private let transaction: any LogTransaction
  private let renewal: ReplicaRenewal
  private var open: [PartitionID: OpenRun] = [:]
  private var contexts: [PartitionID: VersionVector] = [:]
  /// Partitions that this device may write to; statements do not change within a transaction.
  private var permitted: Set<PartitionID> = []

  init(_ state: EngineState, _ transaction: any LogTransaction) {
    (self.state, self.transaction, renewal) = (state, transaction, ReplicaRenewal(state))
  }

  private var hash: HashFunction { state.identity.cryptography.hash }

  /// Each job becomes one change. A refused one does not touch the others; a failing disk fails them all.
  mutating func write(_ jobs: [LocalWriteJob], _ done: inout Committed) throws {
    for job in jobs {
      do {
        done.receipts.append((job, .success(try write(job, &done))))
      } catch let failure as any StoreFailure {
        throw failure
      } catch EngineError.ownRunNotTaken {
        // Its chain would go on from what is nowhere.
        throw EngineError.ownRunNotTaken
      } catch {
        done.receipts.append((job, .failure(error)))
      }
    }
    for partition in open.keys.sorted() { try close(partition, &done) }
  }

  private mutating func write(_ job: LocalWriteJob, _ done: inout Committed) throws -> ChangeReceipt {
    let partition = state.identity.id(of: job.partition)
    try permit(partition, job.partition)
    // A document that the open run makes is read from the store.
    if open[partition]?.makes(job.edits.map(\.key)) == true { try close(partition, &done) }
    if open[partition] == nil, !isReady(partition, job.partition) {
      // Judged under a name that nothing has: only what changes something may draw a replica id or make a partition.
      let trial = try compose(job, partition, LocalWriter.trialDot, &done)
      guard trial.changesSomething else { return trial.receipt(dot: nil) }
      try judge(trial, partition)
      if let reading = job.reading { try judge(job, from: reading, partition, &done) }
      try beginWriting(partition, job.partition, &done)
    }
    if let reading = job.reading { return try write(job, from: reading, partition, &done) }
    let place = try openRun(for: partition)
    var composer = try compose(job, partition, place.dot, &done)
    guard composer.changesSomething else { return composer.receipt(dot: nil) }
    let change = try change(composer, place)
    try append(change, partition, &done)
    if composer.onlyMakesDocuments, open[partition]?.make(change, composer.changed) == true {
      composer.note(change)
    } else {
      done.documents.append(try composer.store(change.context, transaction))
    }
    for key in composer.changed { state.quarantine.release(key, in: partition) }
    state.own.commits += 1
    return composer.receipt(dot: place.dot)
  }

  private static let trialDot = Dot(replica: .zero, sequence: 1)

  /// Refuses now what would be refused once replica id and partition are made.
  private func judge(_ trial: DocumentComposer, _ partition: PartitionID) throws {
    let dot = LocalWriter.trialDot
    _ = try ComposedChange(
      WriteContext(dot: dot, timestamp: .zero, context: VersionVector()), wall: WallTime(milliseconds: 0),
      payload: try trial.payload(),
      in: ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: dot.replica), hash)
  }

  /// The same of what somebody read elsewhere.
  private func judge(
    _ job: LocalWriteJob, from reading: EarlierReading, _ partition: PartitionID, _ done: inout Committed
  ) throws {
    let seen = SeenByReader(state, transaction, partition)
    guard let replica = state.own.replica?.id, state.mesh.ledger.partitions.holds(partition),
      !renewal.mustChange(for: partition, job.partition)
    else { return try seen.judge(reading) }
    let dot = Dot(replica: replica, sequence: state.own.sequence(in: partition) + 1)
    let context = try seen.context(of: reading, after: state.own.context(in: partition))
    let sight = state.look(at: partition) { $0.log.sight(of: context, author: dot) } ?? .plain
    let write = WriteContext(dot: dot, timestamp: .zero, context: context, sight: sight)
    try seen.check(try compose(job, partition, dot, &done).writes, write, reading, &done)
  }

  /// A document that does not read is made anew from the log first; where that does not have it, it can be replaced.
  private func compose(
    _ job: LocalWriteJob, _ partition: PartitionID, _ dot: Dot, _ done: inout Committed
  ) throws -> DocumentComposer {
    var (met, lost): (Set<DocumentKey>, Set<DocumentKey>) = ([], [])
    while true {
      do {
        return try compose(job, partition, dot, lost: lost)
      } catch let damage as DamagedDocument {
        guard met.insert(damage.key).inserted else { throw damage }
        var mending = CommitWriter(state, transaction)
        lost.formUnion(try mending.mend([damage.key], in: partition))
        done.documents += mending.done.documents
      }
    }
  }

  private func compose(
    _ job: LocalWriteJob, _ partition: PartitionID, _ dot: Dot, lost: Set<DocumentKey>
  ) throws -> DocumentComposer {
    var composer = DocumentComposer(partition: partition, dot: dot, hash: hash, lost: lost)
    for edit in job.edits {
      if let reading = job.reading {
        try composer.add(edit, on: reading.state, random: &state.random)
      } else {
        try composer.add(edit, transaction, random: &state.random)
      }
    }
    return composer
  }

  /// A run of its own, with a context of its own: what its reader had before him.
  private mutating func write(
    _ job: LocalWriteJob, from reading: EarlierReading, _ partition: PartitionID, _ done: inout Committed
  ) throws -> ChangeReceipt {
    try close(partition, &done)
    guard let replica = state.own.replica?.id else { throw EngineError.notAMember }
    let seen = SeenByReader(state, transaction, partition)
    let context = try seen.context(of: reading, after: state.own.context(in: partition))
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
    var builder = RunBuilder(
      chain: chain, after: state.own.sequence(in: partition),
      hashBefore: state.own.tip(in: partition) ?? chain.genesis(hash), context: context, hash: hash)
    let dot = builder.nextDot
    let composer = try compose(job, partition, dot, &done)
    guard composer.changesSomething else { return composer.receipt(dot: nil) }
    let sight = state.look(at: partition) { $0.log.sight(of: context, author: dot) } ?? .plain
    let timestamp = state.own.nextTimestamp(wallMilliseconds: state.clock.wallMilliseconds)
    let write = WriteContext(dot: dot, timestamp: timestamp, context: context, sight: sight)
    try seen.check(composer.writes, write, reading, &done)
    let change = try ComposedChange(write, wall: reading.wall, payload: try composer.payload(), in: chain, hash)
    let form = state.identity.cryptography.formats.form(of: dot.sequence)
    builder.append(
      payload: change.payload, keyHashes: change.keyHashes, timestamp: timestamp, wall: reading.wall, codec: form.codec,
      extensions: form.extensions + reading.extensions)
    // The next run has seen what this one had, and more.
    contexts[partition] = nil
    state.own.commits += 1
    done.documents.append(try OwnRuns(state, transaction).appendFolding(builder, to: partition, sight, &done))
    // Merged with what the reader had not seen, so nobody knows its version from the change alone.
    return ChangeReceipt(dot: dot, etags: job.edits.map { _ in nil }, created: composer.receipt(dot: dot).created)
  }

  private func change(_ composer: DocumentComposer, _ place: OpenRun.Place) throws -> ComposedChange {
    let wall = state.clock.wallMilliseconds
    let payload = try composer.payload()
    let timestamp = state.own.nextTimestamp(wallMilliseconds: wall)
    let sight = state.look(at: place.chain.partition) { $0.log.sight(of: place.context, author: place.dot) }
    return try ComposedChange(
      WriteContext(dot: place.dot, timestamp: timestamp, context: place.context, sight: sight ?? .plain),
      wall: WallTime(milliseconds: wall), payload: payload, in: place.chain, hash)
  }

  private mutating func permit(_ partition: PartitionID, _ name: PartitionName) throws {
    guard !permitted.contains(partition) else { return }
    let level = state.mesh.ledger.authority.level(of: state.identity.device, in: name)
    guard level >= .write else {
      let reason = RightsWords(state.mesh.authority).standing(of: state.identity.device, in: name)
      throw EngineError.notPermitted(name, has: level, because: reason)
    }
    guard renewal.hasRight(in: name) else {
      throw EngineError.notPermitted(name, has: level, because: "by the statements that are here it would not count")
    }
    permitted.insert(partition)
  }

  /// True where nothing has to be made before this node can write there.
  private func isReady(_ partition: PartitionID, _ name: PartitionName) -> Bool {
    !renewal.mustChange(for: partition, name) && state.look(at: partition, \.hasBegun) == true
      && (state.mesh.interest.wants(partition, name: name))
  }

  /// The replica id, the partition and the subscription to it, each where it is not there yet.
  private mutating func beginWriting(_ partition: PartitionID, _ name: PartitionName, _ done: inout Committed) throws {
    guard state.mesh.ledger.mayBegin(partition) else { throw EngineError.tooManyPartitions(name) }
    // What is open in other partitions is of the id that is before.
    if renewal.mustChange(for: partition, name) {
      for other in open.keys.sorted() { try close(other, &done) }
      contexts = [:]
    }
    try renewal.changeIfDue(for: partition, name, transaction, &done)
    _ = state.mesh.ledger.begin(name)
    try transaction.addPartition(partition, name)
    guard !state.mesh.interest.wants(partition, name: name), !done.subscribed.contains(name) else { return }
    try transaction.subscribe(name.text)
    done.subscribed.append(name)
  }

  /// The place of the next change in this partition. Begins a run where none is open; its context is what is accepted
  /// now.
  private mutating func openRun(for partition: PartitionID) throws -> OpenRun.Place {
    // Not the builder itself: a copy of it would make the next append copy all its changes.
    if let place = open[partition]?.place { return place }
    guard let replica = state.own.replica?.id else { throw EngineError.notAMember }
    let chain = ChainIdentity(fleet: state.identity.fleet, partition: partition, replica: replica)
    let run = OpenRun(
      RunBuilder(
        chain: chain, after: state.own.sequence(in: partition),
        hashBefore: state.own.tip(in: partition) ?? chain.genesis(hash), context: context(partition, replica),
        hash: hash))
    open[partition] = run
    return run.place
  }

  private mutating func context(_ partition: PartitionID, _ replica: ReplicaID) -> VersionVector {
    if let known = contexts[partition] { return known }
    let previous = state.own.context(in: partition)
    let context = state.look(at: partition) { $0.log.nextContext(of: replica, after: previous) } ?? previous
    contexts[partition] = context
    return context
  }

  private mutating func append(
    _ change: ComposedChange, _ partition: PartitionID, _ done: inout Committed
  ) throws {
    if open[partition]?.builder.hasRoom(for: change.payload.count) == false {
      try close(partition, &done)
      _ = try openRun(for: partition)
    }
    let form = state.identity.cryptography.formats.form(of: change.context.dot.sequence)
    open[partition]?.builder.append(
      payload: change.payload, keyHashes: change.keyHashes, timestamp: change.context.timestamp, wall: change.wall,
      codec: form.codec, extensions: form.extensions)
  }

  /// Signs and appends the open run.
  private mutating func close(_ partition: PartitionID, _ done: inout Committed) throws {
    guard let run = open.removeValue(forKey: partition), !run.builder.isEmpty else { return }
    let change = try OwnRuns(state, transaction).append(run.builder, making: run.made, to: partition, &done)
    // So that its own documents are all that is to be written with it.
    Invariant.check(
      change.effects.isEmpty && change.regrouped.isEmpty && change.forkedReplica == nil,
      "a local write moves what else was written")
  }
}
