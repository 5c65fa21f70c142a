import Engine
import Forwarding
import Replication
import Wire

/// What the backend says beside its ledger: marks and documents.
struct BackendCheck: Check {
  let known: Knowledge

  /// What counts, and what documents show, is what the naive rules make of what a relay holds that knows all of it.
  func difference(_ shore: Shore, _ relays: [SimulatedNode]) -> String? {
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
    guard !lacksStatement(of: name, in: ledger, book) else { return nil }
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
        ledger.rejects(Digest.of(row.state, FakeCryptography.hash)) || BackendCheck.holdsNull(body)
        || document.key.id.contains(0) && BackendCheck.idHoldsNull(document.key.id)
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
