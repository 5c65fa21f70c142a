import Engine
import Forwarding
import Replication
import Wire

/// What the backend has (I9): its ledger here, and what it says beside that.
struct ShoreCheck: Check {
  let known: Knowledge

  var words: WordCheck { WordCheck(known: known) }
  var readings: ReadingCheck { ReadingCheck(known: known) }
  var edits: EditCheck { EditCheck(known: known) }

  /// Why the backend is not what its relays hold; nil where it is, or where nobody forwards.
  func difference() -> String? {
    guard let shore = world.shore else { return nil }
    for slot in shore.speaking {
      guard let relay = world.nodes[slot].process?.relay else { return "relay \(slot) is not there" }
      guard relay.forwarder.problem == nil, relay.caughtUpAt ?? 0 > shore.closedSince ?? 0 else {
        return "relay \(slot) is \(relay.forwarder.state.rawValue): \(relay.forwarder.problem?.sentence ?? "")"
      }
    }
    let relays = shore.speaking.map { world.nodes[$0] }
    return relays.lazy.compactMap { self.lack(of: $0, shore.ledger) }.first ?? differenceInRuns(shore)
      ?? BackendCheck(known: known).difference(shore, relays) ?? readings.difference(shore, relays)
      ?? edits.difference(shore)
  }

  /// What readings alone bring about where a ledger was put back: it has what relays hold, but for other branches of chains,
  /// of which no reading speaks.
  func lackBehindReadings() -> String? {
    guard let shore = world.shore else { return nil }
    for slot in shore.speaking {
      guard world.nodes[slot].process?.relay?.forwarder.problem == nil else { return "relay \(slot) is not there" }
      if let lack = lack(of: world.nodes[slot], shore.ledger, isForkedToo: false) { return lack }
    }
    return nil
  }

  /// The ledger has all that the relay's store has.
  private func lack(of node: SimulatedNode, _ ledger: ModelLedger, isForkedToo: Bool = true) -> String? {
    let book = node.directory.book
    for statement in book.statements.values where ledger.statements[statement.id] != statement.encoded {
      return "the ledger lacks a statement of relay \(node.slot)"
    }
    return lackingRun(of: node, ledger, isForkedToo: isForkedToo)
  }

  private func lackingRun(of node: SimulatedNode, _ ledger: ModelLedger, isForkedToo: Bool) -> String? {
    let book = node.directory.book
    for (id, partition) in book.partitions {
      if !partition.held.isEmpty, ledger.partitions[id] != partition.name {
        return "the ledger does not name \(partition.name.text.string)"
      }
      for run in partition.runs.values.joined() where isForkedToo || !book.isForked(run.replica, in: id) {
        let chain = ChainKey(partition: id, replica: run.replica)
        for (index, change) in run.observed.changes.enumerated()
        where !ledger.has(change.hash, at: run.first + UInt64(index), of: chain) {
          return "the ledger lacks change \(run.first + UInt64(index)) of \(run.replica) at relay \(node.slot)"
        }
        guard let hash = (try? RunCodec.apartPayload(of: run.body[...])) ?? nil else { continue }
        if ledger.payloads[ModelLedger.PayloadKey(partition: id, hash: hash)] != known.payloads[hash] {
          return "the ledger lacks the payload of change \(run.first) of \(run.replica)"
        }
      }
    }
    return nil
  }

  /// Every row is what some relay stored, with the context that belongs to it, and every change is of a run.
  private func differenceInRuns(_ shore: Shore) -> String? {
    let ledger = shore.ledger
    var claimed: Set<ModelLedger.RunKey> = []
    for row in ledger.runs.values {
      guard let run = known.library.known(row.body[...], in: row.chain.partition), shore.relayed.contains(run.number)
      else {
        return "the ledger has a run that no relay held"
      }
      let hashes = run.observed.changes.map(\.hash)
      guard run.replica == row.chain.replica, run.first == row.first, run.last == row.last, hashes.last == row.hash,
        run.observed.hashBefore == row.hashBefore, row.changes.map(\.hash) == hashes
      else { return "the ledger says of run \(run.replica) \(run.first) what was not signed" }
      guard context(of: row, ledger) == run.context else {
        return "the ledger has another context of run \(run.replica) \(run.first)"
      }
      for (index, hash) in hashes.enumerated() {
        claimed.insert(ModelLedger.RunKey(chain: row.chain, last: row.first + UInt64(index), hash: hash))
      }
    }
    return claimed.count == ledger.changeCount ? nil : "the ledger has changes that no run of it has"
  }

  /// As whoever reads the ledger alone puts it together.
  private func context(of row: LedgerBatch.Run, _ ledger: ModelLedger) -> VersionVector? {
    var reader = CBORReader(row.context[...])
    guard let form = try? reader.readContext() else { return nil }
    if case .full(let whole) = form { return whole }
    let before = ledger.runs[ModelLedger.RunKey(chain: row.chain, last: row.first &- 1, hash: row.hashBefore)]
    return before.flatMap { context(of: $0, ledger) }.map { form.resolved(on: $0) }
  }
}
