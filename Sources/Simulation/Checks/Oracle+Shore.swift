import Engine
import Forwarding
import Replication
import Wire

// What the backend says beside its ledger: marks, documents, and what becomes of edits.
extension Oracle {
  /// What counts, and what documents show, is what the naive rules make of what a relay holds that knows all of it.
  func differenceInDocuments(_ shore: Shore, _ relays: [SimulatedNode]) -> String? {
    // Copies of one machine replace one another's words, and neither notices: open (Docs/PROOF.md).
    let devices = relays.map(\.key.device)
    guard Set(devices).count == devices.count else { return nil }
    for (id, name) in shore.ledger.partitions.sorted(by: { $0.key < $1.key }) {
      let verdicts = relays.compactMap { knowing(id, name, $0, shore.ledger) }
      guard let verdict = verdicts.first else {
        world.count(.knownToNobody)
        continue
      }
      // Of branches of one length each of two may have another.
      guard verdicts.allSatisfy({ $0.acceptance.effective == verdict.acceptance.effective }) else { continue }
      let difference = differenceInMarks(id, verdict, shore.ledger) ?? differenceInRows(id, verdict, shore.ledger)
      if let difference { return "\(name.text.string): \(difference)" }
    }
    return nil
  }

  /// The verdict on what the relay holds of the partition, where that is all that the ledger has.
  private func knowing(
    _ id: PartitionID, _ name: PartitionName, _ node: SimulatedNode, _ ledger: ModelLedger
  ) -> PartitionVerdict? {
    let book = node.directory.book
    guard book.statements.count >= ledger.statements.count else { return nil }
    let chains = ledger.chains.filter { $0.partition == id }
    guard chains.allSatisfy({ book.reaches(ledger.highest(of: $0), of: $0.replica, in: id) }) else { return nil }
    let verdict = verdict(node, id, name)
    let isFree = chains.allSatisfy { !ledger.isForked($0) || verdict.acceptance.forkPoints[$0.replica] != nil }
    return isFree ? verdict : nil
  }

  private func differenceInMarks(
    _ id: PartitionID, _ verdict: PartitionVerdict, _ ledger: ModelLedger
  ) -> String? {
    for chain in ledger.chains where chain.partition == id {
      // Of which nothing is here without a hole.
      guard let received = verdict.acceptance.received[chain.replica], received.sequence > 0 else { continue }
      let counted = verdict.acceptance.accepted[chain.replica]
      let wanted = counted.map { ChainPosition(sequence: $0.sequence, tip: $0.tip) }
      let mark = ledger.marks[chain]?.position
      guard mark == wanted ?? ChainPosition(sequence: 0, tip: .zero) else {
        return "\(chain.replica) is marked to \(mark.map { "\($0.sequence)" } ?? "nothing"), and counts to "
          + "\(counted.map { "\($0.sequence)" } ?? "nothing")"
      }
    }
    return nil
  }

  private func differenceInRows(_ id: PartitionID, _ verdict: PartitionVerdict, _ ledger: ModelLedger) -> String? {
    var alive: Set<DocumentPlace> = []
    for document in verdict.documents {
      let collection = Text(String(decoding: document.key.collection, as: UTF8.self))
      let place = DocumentPlace(partition: id, key: DocumentKey(collection: collection, id: document.key.id))
      guard let body = document.body else { continue }
      alive.insert(place)
      guard let row = ledger.documents[place], row.isAlive else { return "the backend lacks a document" }
      let state = try? DocumentState(encoded: row.state)
      guard document.shows(state?.shown()) else { return "the backend has another state of a document" }
      let isRefused =
        ledger.rejects(Digest.of(row.state, FakeCryptography.hash)) || Oracle.holdsNull(body)
        || document.key.id.contains(0) && Oracle.idHoldsNull(document.key.id)
      guard isRefused == (row.refusal != nil), isRefused == (row.body == nil) else {
        return "a document is \(isRefused ? "no dead letter" : "a dead letter: \(row.refusal ?? "no reason")")"
      }
      guard let text = row.body else { continue }
      guard document.shows(try? ExtendedJSON.parseMap(Array(text.utf8))) else {
        return "the backend shows \(text), and by the rules \(body)"
      }
    }
    for (place, row) in ledger.documents where place.partition == id && row.isAlive && !alive.contains(place) {
      return "the backend shows a document that is not there: \(row.body ?? "")"
    }
    return nil
  }

  private static func idHoldsNull(_ id: [UInt8]) -> Bool { Value(canonicalID: id).map(holdsNull) ?? false }

  /// The character that no table takes.
  private static func holdsNull(_ value: Value) -> Bool {
    switch value {
    case .string(let text): text.string.utf8.contains(0)
    case .blob(let blob): blob.type.string.utf8.contains(0)
    case .array(let items): items.contains(where: holdsNull)
    case .map(let map): map.entries.contains { holdsNull($0.value) }
    case .null, .bool, .int, .double, .bytes, .date, .objectID, .uuid: false
    }
  }
}

// What is said of the backend.
extension Oracle {
  /// A relay tells its node of no change that the ledger does not have at that moment.
  func readBack(_ name: PartitionName, _ vector: VersionVector, by node: SimulatedNode) {
    guard let shore = world.shore else { return }
    let partition = world.fleet.partition(name)
    let before = shore.readings[node.slot]?[partition]?.last ?? VersionVector()
    shore.readings[node.slot, default: [:]][partition, default: []].append(vector)
    // What stands as it was may not have been asked about again.
    let fresh = vector.entries.filter { before[$0.key] != $0.value }
    if let place = lacking(VersionVector(fresh), partition, shore.ledger) {
      world.violate("I9", "relay \(node.slot) reads back change \(place), which the ledger lacks")
    }
  }

  private func lacking(_ vector: VersionVector, _ partition: PartitionID, _ ledger: ModelLedger) -> String? {
    vector.sorted.lazy.filter { replica, position in
      !ledger.has(
        position.tip, at: position.sequence, of: ChainKey(partition: partition, replica: replica))
    }.map { "\($0.position.sequence) of \($0.replica)" }.first
  }

  /// A word about the backend says what its device had read there, and nothing else.
  func checkBackendWord(_ holdings: Holdings, at node: SimulatedNode) {
    guard !world.nodes.contains(where: { $0.liar != nil && $0.key.publicKey == holdings.device }) else { return }
    world.count(.saidBackend)
    let partition = world.fleet.partition(holdings.partition)
    let slots = world.nodes.filter { $0.key.publicKey == holdings.device }.map(\.slot)
    if !slots.contains(where: { world.shore?.readings[$0]?[partition]?.contains(holdings.vector) == true }) {
      world.violate("I9", "node \(node.slot) keeps a word about the backend that its device had not read there")
    }
  }

  /// In the end what a relay says of the backend is so, and it knows of all that it holds that it is there.
  func differenceInReadings(_ shore: Shore, _ relays: [SimulatedNode]) -> String? {
    for node in relays {
      for (place, word) in node.directory.book.holdings
      where place.subject.kind == .backend && place.subject.device == node.key.publicKey {
        if let change = lacking(word.vector, place.partition, shore.ledger) {
          return "relay \(node.slot) says that the backend has change \(change), which it lacks"
        }
      }
      for (id, partition) in node.directory.book.partitions where !partition.held.isEmpty {
        let read = shore.readings[node.slot]?[id]?.last ?? VersionVector()
        let acceptance = verdict(node, id, partition.name).acceptance
        for (replica, position) in acceptance.received where acceptance.forkPoints[replica] == nil {
          guard read.sequence(of: replica) != position.sequence else { continue }
          return "relay \(node.slot) has read back \(read.sequence(of: replica)) of \(replica), and holds "
            + "\(position.sequence)"
        }
      }
    }
    return nil
  }
}

// What becomes of the office's edits.
extension Oracle {
  /// Each has an answer, and takes effect once.
  func differenceInEdits(_ shore: Shore) -> String? {
    let office = shore.ledger.office
    for row in office.rows where !row.isSettled && !shore.carriers.isEmpty {
      // Who had read what does not count any more, or not yet, is told so.
      guard row.waitsFor == nil else { continue }
      // Who forwards no more has it for ten minutes.
      if let relay = row.relay, shore.retired.contains(where: { $0.key.device == relay }) { continue }
      return "an edit of the office waits without a reason"
    }
    let causes = effects()
    for edit in shore.asked {
      let (made, effective) = causes[edit.id] ?? (0, 0)
      if effective > 1, !mayTakeEffectTwice(shore) { return "an edit of the office takes effect \(effective) times" }
      let row = office.rows.first { $0.edit.id == edit.id }
      // Where the ledger went back it was refused in another past, and the office is told of the change.
      if row?.refusal != nil, made > 0, !shore.hasGoneBack, !mayTakeEffectTwice(shore) {
        return "an edit was refused, and there is a change of it: \(row?.refusal ?? "")"
      }
    }
    return nil
  }

  /// Who lost what he had done, or was told to do, cannot know that somebody else has it.
  private func mayTakeEffectTwice(_ shore: Shore) -> Bool {
    shore.hasGoneBack && shore.carrying.count > 1
      || shore.carrying.contains { world.nodes[$0].lineage > 0 || shore.cloned.contains(world.nodes[$0].key.device) }
  }

  /// Of each edit, how many changes name it as their cause, and how many of those have effect at any one node.
  private func effects() -> [UUIDValue: (made: Int, effective: Int)] {
    var found: [UUIDValue: (made: Int, effective: Int)] = [:]
    for run in library.all {
      for (index, edit) in run.edits.enumerated() {
        guard let edit else { continue }
        let dot = Dot(replica: run.replica, sequence: run.first + UInt64(index))
        let counts = world.nodes.contains { node in
          guard node.liar == nil, node.process != nil, let part = node.directory.book.partitions[run.partition] else {
            return false
          }
          return verdict(node, run.partition, part.name).counts(run.observed.changes[index].hash, at: dot)
        }
        found[edit, default: (0, 0)].made += 1
        if counts { found[edit, default: (0, 0)].effective += 1 }
      }
    }
    return found
  }
}
