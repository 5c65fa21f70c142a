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

  @Test("a copy of the relay that forwards, which may not go on itself, knows what the ledger has no more")
  func refusedAsCopy() throws {
    let log = try HeldLog(changes: 3, counting: 3)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    _ = try reader.read(.everything)
    log.ledger.hashes.removeLast(2)
    log.ledger.isHeldByCopy.withLock { $0 = true }
    #expect(throws: BackendProblem.self) { try reader.read(.everything) }
    #expect(log.told == [1])
  }

  @Test(
    "so does one that may not even read the ledger anew, whether or not it last did; of what is there as before it says nothing",
    arguments: [false, true])
  func refusedAtTheStart(isReadAnew: Bool) throws {
    let log = try HeldLog(changes: 3, counting: 3)
    let runner = DirectiveRunner(source: log, backend: log.ledger, limits: ForwarderLimits(), process: "a")
    _ = runner.run(.readBack(.everything), nil)
    func isRefused() -> Bool {
      if case .failed? = runner.run(.readLedger, nil) { true } else { false }
    }
    if isReadAnew { #expect(!isRefused()) }
    log.ledger.isHeldByCopy.withLock { $0 = true }
    #expect(isRefused() && log.toldCount == 1)
    log.ledger.hashes.removeLast(2)
    #expect(isRefused() && isRefused() && log.told == [1] && log.toldCount == 2)
    log.ledger.hashes.removeLast()
    #expect(isRefused() && log.told == [] && log.toldCount == 3)
  }

  @Test("where the log does not tell how much of a chain is left there, who is refused says nothing of it any more")
  func refusedWithDamage() throws {
    let log = try HeldLog(changes: 4, counting: 4)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    _ = try reader.read(.everything)
    log.ledger.hashes.removeLast(2)
    try log.damage(2...3)
    try reader.takeBack()
    #expect(log.told == [] && log.toldCount == 2)
  }

  @Test(
    "nothing is said of a chain of which the log does not tell what to ask, whether all is read or nothing may be",
    arguments: [false, true])
  func unaskable(isRefused: Bool) throws {
    let log = try HeldLog(changes: 3, counting: 1)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    _ = try reader.read(.everything)
    #expect(log.told == [3])
    try log.damage(3...3)
    if isRefused { try reader.takeBack() } else { _ = try reader.read(.everything) }
    #expect(log.told == [] && log.toldCount == 2)
  }

  @Test("of a chain of which something was sent what was read before stays, where the log tells no more and it can be")
  func sentWithDamage() throws {
    let log = try HeldLog(changes: 4, counting: 4)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    let hashes = log.ledger.hashes
    log.ledger.hashes = Array(hashes.prefix(2))
    _ = try reader.read(.everything)
    #expect(log.told == [2])
    try log.damage(1...4)
    log.ledger.hashes = Array(hashes.prefix(3))
    #expect(try !reader.read(.chains([log.key])).wentBack && log.told == [2])
    log.ledger.hashes = Array(hashes.prefix(1))
    #expect(try reader.read(.chains([log.key])).wentBack && log.told == [])
  }

  @Test("that the ledger has less of a chain than at the reading before is told, once, and not after it is read anew")
  func wentBack() throws {
    let log = try HeldLog(changes: 3, counting: 3)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    func wentBack() throws -> Bool { try reader.read(.everything).wentBack }
    #expect(try !wentBack() && !wentBack())
    let last = log.ledger.hashes.removeLast()
    #expect(try wentBack() && !wentBack())
    log.ledger.hashes.append(last)
    #expect(try !wentBack())
    log.ledger.hashes.removeLast()
    reader.forget()
    #expect(try !wentBack())
  }

  @Test(
    "of a forked chain the ledger is taken to have what counts, whatever branches have its numbers; of others what it has",
    arguments: [false, true])
  func forkedAtFirst(isForked: Bool) throws {
    let log = try HeldLog(changes: 3, counting: 1, isForked: isForked)
    let reading = try LedgerReader(source: log, backend: log.ledger, limits: ForwarderLimits()).read()
    #expect(reading.view.reached.values.map { $0 } == [isForked ? 1 : 3])
    // What comes above is looked at again.
    #expect(reading.runsAfter == (isForked ? 1 : 3))
  }

  @Test("where statements stand that are not here is asked once, and of what does not read nothing is known")
  func elsewhere() throws {
    let log = try HeldLog(changes: 1, counting: 1)
    let reader = ReadBackReader(source: log, backend: log.ledger, limits: ForwarderLimits())
    #expect(try reader.read(.everything).elsewhere == [])
    let said = try StatementSigner(fleet: log.fleet, key: SigningKey()).sign(
      .genesis(Statement.Genesis(fleetName: "f")))
    let unreadable = Digest(words: (1, 0, 0, 0))
    log.ledger.statements.withLock { $0 = [said.id: said.encoded, unreadable: [1]] }
    let place = StatementPlace(issuer: said.issuer, scope: "", sequence: 1, id: said.id)
    for _ in 0..<2 {
      let outcome = try reader.read(.everything)
      #expect(outcome.elsewhere == [place] && outcome.statements == [said.id, unreadable])
    }
    #expect(try reader.read(.chains([])).elsewhere == nil)
    log.ledger.statements.withLock { $0[unreadable] = nil }
    reader.forget()
    let outcome = try reader.read(.everything)
    #expect(outcome.elsewhere == [place] && outcome.statements == nil)
    #expect(log.ledger.askedHeads.withLock { $0.count { $0 == said.id } } == 1)
    log.ledger.statements.withLock { $0 = [:] }
    #expect(try reader.read(.everything).elsewhere == [])
  }

  @Test("marks and what a relay knows beside them are of one state of its store", arguments: 0...3)
  func marksOfOneState(settled: Int) throws {
    let log = try HeldLog(changes: 3, counting: settled)
    // Where that was some commits ago, what is settled by now is known for certain, and no more.
    for position in ["", "0.2.0"] {
      let page = try log.page(counting: 1, at: position)
      #expect(page.batch.marks.map(\.position.sequence) == (settled == 3 ? [3] : []))
      #expect(page.marked.keys.map { $0 } == (settled == 3 ? [log.partition] : []))
      #expect(page.batch.heads.map(\.highest) == [3])
    }
  }

  @Test("a chain of which more counts than is settled is marked with what counts", arguments: 0...2)
  func marksAboveWhatIsSettled(settled: Int) throws {
    let log = try HeldLog(changes: 3, counting: settled)
    for counting in UInt64(settled)...3 {
      let page = try log.page(counting: counting, at: log.end())
      #expect(page.batch.marks.map(\.position.sequence) == [counting])
      #expect(page.marked.keys.map { $0 } == [log.partition])
    }
  }

  @Test("a mark that the backend left to another relay is not sent again, and one that moved since is")
  func marksLeftToAnother() throws {
    let log = try HeldLog(changes: 3, counting: 3)
    let mark = try #require(try log.page(counting: 3, at: log.end()).batch.marks.first)
    var (view, outcome, batch) = (LedgerView(), AppendOutcome(), LedgerBatch())
    (outcome.staleMarks, batch.marks) = ([0], [mark])
    view.leave(outcome, of: batch)
    view.highest[mark.chain] = 3
    let page = try log.page(counting: 3, at: log.end(), view, runsAfter: 3)
    #expect(page.batch.marks.isEmpty && page.marked.keys.map { $0 } == [log.partition])
    try log.count(2)
    let moved = try log.page(counting: 2, at: log.end(), view, runsAfter: 3)
    #expect(moved.batch.marks.map(\.position.sequence) == [2])
  }

  @Test("a forked chain is marked where what counts is of the state that is read, and otherwise later")
  func marksOfForkedChains() throws {
    let log = try HeldLog(changes: 3, counting: 1, isForked: true)
    let end = try log.end()
    for position in [end, "", "0.2.0"] {
      let page = try log.page(counting: 2, at: position)
      #expect(page.batch.marks.map(\.position.sequence) == (position == end ? [2] : []))
      #expect(page.marked.keys.map { $0 } == (position == end ? [log.partition] : []))
    }
  }
}

extension HeldLog {
  fileprivate func end() throws -> String { try read { try $0.logEnd().text } }

  /// Of the runs behind a place, and of marks: so many changes counted when the log was at that position.
  fileprivate func page(
    counting: UInt64, at position: String, _ view: LedgerView = LedgerView(), runsAfter: Int64 = 0
  ) throws -> Forwarder.Page {
    var accepted = VersionVector()
    if counting > 0 { accepted[ReplicaID(high: 1, low: 2)] = ChainPosition(sequence: counting, tip: .zero) }
    let request = Forwarder.LoadRequest(
      view: view, statementsAfter: 0, runsAfter: runsAfter, unmarked: [partition: accepted],
      unmarkedAt: position, bytes: 1_000_000, changes: 100, marks: 100)
    let reader = PageReader(fleet: fleet, hash: hash)
    return try read { store in try store.snapshot { try reader.page(request, from: $0) } }
  }
}
