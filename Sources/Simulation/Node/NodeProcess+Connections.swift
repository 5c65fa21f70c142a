import Replication
import Wire

extension NodeProcess {
  // MARK: Sending

  /// Vectors and statements may stand on what the next commit will write: nothing overtakes it.
  func emit(_ outgoing: Outgoing) {
    outbox.append(outgoing)
    if pending.isEmpty && !isWriting || world.has(.sendBeforeCommit) { flush() }
  }

  func flush() {
    let outgoing = outbox
    outbox = []
    for item in outgoing where !isDead {
      switch item {
      case .message(let id, let message): send(message, to: id)
      case .close(let id): world.close(self, id, afterFlush: true)
      }
    }
  }

  func send(_ message: Message, to id: SessionID) {
    guard let link = links[id] else { return }
    world.oracle.sending(message, by: self)
    world.note("\(node.slot) to \(link.remoteSlot) on \(id.rawValue): \(message.summary)")
    switch world.send(MessageCodec.encode(message), on: link.connection, from: link.side) {
    case .queued: break
    case .aboveMark:
      mesh.pause(id)
      world.count(.paused)
    case .overflow: world.close(self, id, afterFlush: false)
    }
  }

  // MARK: Receiving

  /// What the IO thread does: decodes, hashes, checks signatures where the signer is known.
  func received(_ frame: [UInt8], on id: SessionID) {
    do {
      guard let message = try MessageCodec.decode(frame[...]) else { return }
      guard case .runs(let batch) = message else { return put(.message(id, message)) }
      let partition = batch.name.id(fleet: fleet, hash: FakeCryptography.hash)
      var runs: [IncomingRun] = []
      for entry in batch.entries {
        let run = try RunCodec.decode(entry.encoded, fleet: fleet, partition: partition, hash: FakeCryptography.hash)
        runs.append(try IncomingRun(run, context: entry.context, in: batch.name, intakeAuthority))
      }
      put(.runs(id, batch, runs))
    } catch {
      put(.violation(id, "\(error)"))
    }
  }

  func receive(_ batch: RunBatch, _ runs: [IncomingRun], from id: SessionID) {
    do {
      deliver(.receivedRuns(id, batch, try runs.map { try checked($0, batch.name) }))
    } catch {
      deliver(.violated(id, "\(error)"))
    }
  }

  /// The IO thread may have known fewer statements than are here now.
  private func checked(_ run: IncomingRun, _ partition: PartitionName) throws -> IncomingRun {
    guard run.signer == nil, let content = run.content as? DecodedRun else { return run }
    return try IncomingRun(content, context: run.context, in: partition, mesh.authority)
  }

  // MARK: Subscriptions

  /// Writing to a partition subscribes to it.
  func beginWriting(_ name: PartitionName) {
    let id = mesh.begin(name)
    if !mesh.interest.wants(id, name: name) { subscribe(name.text) }
  }

  func subscribe(_ pattern: Text) {
    guard !node.disk.image.subscriptions.contains(pattern), world.clock >= node.diskFullUntil else { return }
    node.disk.image.subscriptions.insert(pattern)
    let added = world.fleet.interest(pattern)
    for name in world.plan.partitions where added.partitions.contains(world.fleet.partition(name)) {
      pending.partitions.append((mesh.begin(name), name))
    }
    world.count(.subscribed)
    deliver(.interestChanged(added: added, removed: Interest()))
  }

  func unsubscribe(_ pattern: Text) {
    guard node.disk.image.subscriptions.remove(pattern) != nil else { return }
    world.count(.unsubscribed)
    deliver(.interestChanged(added: Interest(), removed: world.fleet.interest(pattern)))
  }
}

extension IncomingRun {
  /// Checks the signature where the signer is known; otherwise leaves the signer open for whoever knows more statements.
  init(
    _ run: DecodedRun, context: ContextForm, in partition: PartitionName, _ authority: Authority
  ) throws(RunError) {
    let signer = authority.signer(of: run.chain.replica)
    if let signer { try run.verifySignature(of: signer, FakeCryptography.verify) }
    var elementDots: [ReplicaID: UInt64] = [:]
    for case .documents(let scan) in run.contents { elementDots.merge(scan.elementDots, uniquingKeysWith: max) }
    self.init(
      replica: run.chain.replica, first: run.first, hashBefore: run.hashBefore, contextDigest: run.contextDigest,
      context: context, hashes: run.hashes, facts: run.facts, elementDots: elementDots, signer: signer,
      encoded: run.encoded, content: run)
  }
}

extension DecodedRun {
  /// Empty where nothing was issued again.
  var facts: [ChangeFacts] {
    let origins = changes.map(\.header.origin)
    return origins.allSatisfy { $0 == nil } ? [] : origins.map { ChangeFacts(origin: $0) }
  }
}

extension DeliveredRun {
  var logged: LoggedRun {
    LoggedRun(
      replica: incoming.replica, first: incoming.first, last: last, hashBefore: incoming.hashBefore,
      hashAtLast: incoming.hashes.last, context: context, encoded: incoming.encoded)
  }
}

extension Message {
  /// Name and place, for logs.
  fileprivate var summary: String {
    switch self {
    case .have(let vector): "have \(vector.name.text.string) \(Oracle.text(vector.vector))"
    case .pull(let stream, let vector): "pull \(stream) \(vector.name.text.string) \(Oracle.text(vector.vector))"
    case .vectors(let vectors): "vectors " + vectors.map { "\($0.name.text.string) \(Oracle.text($0.vector))" }.joined()
    case .runs(let batch): "\(batch.entries.count) runs \(batch.name.text.string) stream \(batch.stream)"
    case .goodbye(let reason): "goodbye \(reason)"
    default: String("\(self)".prefix { $0 != "(" })
    }
  }
}
