import Foundation
import Identity
import Replication
import Storage
import Synchronization
import Testing
import Wire

@testable import Engine
@testable import Forwarding

/// What a relay tells its node that the ledger has, of chains of which not all counts.
@Suite("What was read back")
struct ReadBackReaderTests {
  @Test("a chain of which more is held than counts is in the backend as far as it is there", arguments: 0...3)
  func heldAboveWhatCounts(counting: Int) throws {
    let log = try HeldLog(changes: 3, counting: counting)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    _ = try reader.read(.everything)
    #expect(log.told == [3])
    log.ledger.hashes.removeLast()
    _ = try reader.read(.everything)
    #expect(log.told == [2])
  }

  @Test("marks and what a relay knows beside them are of one state of its store", arguments: 0...3)
  func marksOfOneState(counting: Int) throws {
    let log = try HeldLog(changes: 3, counting: counting)
    // As it was two commits ago.
    let older = VersionVector([ReplicaID(high: 1, low: 2): ChainPosition(sequence: 1, tip: .zero)])
    let request = Forwarder.LoadRequest(
      view: LedgerView(), statementsAfter: 0, runsAfter: 0, unmarked: [log.partition: older], bytes: 1_000_000,
      changes: 100, marks: 100)
    let reader = PageReader(fleet: log.fleet, hash: log.hash)
    let page = try log.read { store in try store.snapshot { try reader.page(request, from: $0) } }
    #expect(page.batch.marks.map(\.position.sequence) == [UInt64(counting)])
    #expect(page.batch.heads.map(\.highest) == [3])
  }

  @Test("a forked chain is marked where what counts is of the state that is read, and otherwise later")
  func marksOfForkedChains() throws {
    let log = try HeldLog(changes: 3, counting: 1, isForked: true)
    let chosen = VersionVector([ReplicaID(high: 1, low: 2): ChainPosition(sequence: 2, tip: .zero)])
    let reader = PageReader(fleet: log.fleet, hash: log.hash)
    let end = try log.read { try $0.logEnd().text }
    for position in [end, "", "0.2.0"] {
      let request = Forwarder.LoadRequest(
        view: LedgerView(), statementsAfter: 0, runsAfter: 0, unmarked: [log.partition: chosen], unmarkedAt: position,
        bytes: 1_000_000, changes: 100, marks: 100)
      let page = try log.read { store in try store.snapshot { try reader.page(request, from: $0) } }
      #expect(page.batch.marks.map(\.position.sequence) == (position == end ? [2] : []))
      #expect(page.marked.keys.map { $0 } == (position == end ? [log.partition] : []))
    }
  }

  @Test("a ledger that has less of a chain than is known leaves a gap, and only where it is asked about")
  func check() throws {
    let ledger = HashLedger((0..<3).map { Digest(words: ($0, 0, 0, 0)) })
    let (chain, other) = (ForwarderModel.chain(1), PartitionID(Digest(words: (9, 9, 9, 9))))
    var known = LedgerView()
    known.highest[chain] = 3
    let check = LedgerCheck(ledger, ForwarderLimits())
    try check.holds(known, of: [chain.partition])
    ledger.hashes.removeLast()
    try check.holds(known, of: [other])
    #expect(throws: BackendProblem(.gap, "the ledger lacks changes that it had")) {
      try check.holds(known, of: [chain.partition])
    }
  }
}
