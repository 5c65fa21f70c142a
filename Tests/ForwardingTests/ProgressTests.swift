import Identity
import Replication
import Storage
import TestSupport
import Testing

@testable import Forwarding
@testable import Seamesh

@Suite("How far documents and a backlog have come")
struct ProgressTests {
  private func place(_ number: Int) -> DocumentPlace {
    DocumentPlace(
      partition: PartitionID(.zero), key: DocumentKey(collection: "c", id: [UInt8(number >> 8), UInt8(number & 255)]))
  }

  @Test("refused documents and dead letters are remembered up to a limit, beyond which the backend knows of them")
  func limits() {
    var progress = DocumentProgress()
    for number in 0..<3_000 {
      progress.refuse(LedgerBatch.Document(place(number)), "not this one")
      #expect(progress.refusals[place(number)] != nil)
    }
    #expect(progress.refusals.count <= DocumentProgress.refusalLimit)
    for number in 0..<DocumentProgress.deadLetterLimit { progress.note(place(number), isDeadLetter: true) }
    #expect(!progress.hasMoreDeadLetters)
    progress.note(place(DocumentProgress.deadLetterLimit), isDeadLetter: true)
    #expect(progress.deadLetters.count == DocumentProgress.deadLetterLimit && progress.hasMoreDeadLetters)
    for number in 0...DocumentProgress.deadLetterLimit { progress.note(place(number), isDeadLetter: false) }
    #expect(progress.deadLetters.isEmpty && progress.hasDeadLetters)
    progress.takeUp([place(1)], isAll: true)
    #expect(progress.due == [place(1)] && !progress.hasMoreDeadLetters)
  }

  @Test("dead letters are tried again by turns, from the first on when all had theirs or others went in meanwhile")
  func turns() {
    let window = DeadLetterTurn.window
    func letters(_ count: Int) -> [DeadLetter] {
      (0..<count).map { DeadLetter(place: place($0), partition: nil, reason: "") }
    }
    var turn = DeadLetterTurn()
    func next(of count: Int) -> Range<Int> {
      let asked = turn.asked
      let (due, isAll) = turn.take(letters(min(asked, count)))
      let places = due.map { Int($0.place.key.id[0]) << 8 + Int($0.place.key.id[1]) }
      #expect(isAll == (count < asked))
      return (places.first ?? 0)..<(places.last ?? -1) + 1
    }
    #expect(next(of: 0) == 0..<0 && next(of: 5) == 0..<5 && next(of: 5) == 0..<5)
    let many = 2 * window + 7
    #expect(
      next(of: many) == 0..<window && next(of: many) == window..<2 * window && next(of: many) == 2 * window..<many)
    #expect(next(of: many) == 0..<window && next(of: 3) == 0..<3 && next(of: many) == 0..<window)
    turn = DeadLetterTurn()
    var seen: Set<Int> = []
    for _ in 0..<DeadLetterTurn.limit / window {
      #expect(turn.asked <= DeadLetterTurn.limit)
      seen.formUnion(next(of: 60_000))
    }
    #expect(seen.count == DeadLetterTurn.limit && next(of: 60_000) == 0..<window)
    var progress = DocumentProgress()
    progress.takeUp([place(1), place(2)], due: [place(2)], isAll: true)
    #expect(progress.due == [place(2)] && progress.deadLetters == [place(1), place(2)])
  }

  @Test("with enough due the log is not looked at for more, and what moved is found from its position afterwards")
  func dueLimit() throws {
    let relay = try ForwardingNode()
    try relay.put("agency=G", "r")
    let pages = PageReader(fleet: relay.node.fleet, hash: SHA256.hash)
    var request = Forwarder.LoadRequest(
      view: LedgerView(), statementsAfter: 0, runsAfter: 0, unmarked: [:], bytes: 1_000_000, changes: 100, marks: 100)
    request.documents.position = LogPosition().text
    // Of a partition that is not here.
    request.documents.due = Set((0..<DocumentProgress.dueLimit).map(place))
    func load() throws -> Forwarder.Page {
      try relay.node.readStore { store in try store.snapshot { try pages.page(request, from: $0) } }
    }
    let first = try load()
    #expect(first.hasMoreDocuments && first.batch.documents.isEmpty)
    #expect(first.documents.due.isEmpty && first.documents.position == LogPosition().text)
    request.documents = first.documents
    let second = try load()
    #expect(second.batch.documents.count == 1 && !second.hasMoreDocuments)
  }

  @Test("how far documents have come is told to the backend when all of them are sent, and not before")
  func position() throws {
    let log = try HeldLog(changes: 3, counting: 3)
    let pages = PageReader(fleet: log.fleet, hash: log.hash)
    // Room for one document at a time, behind all runs.
    var request = Forwarder.LoadRequest(
      view: LedgerView(), statementsAfter: 0, runsAfter: 3, unmarked: [:], bytes: 1, changes: 100, marks: 100)
    request.documents.position = LogPosition().text
    var (sent, pageCount, position) = (0, 0, "")
    while position.isEmpty, pageCount < 10 {
      let page = try log.read { store in try store.snapshot { try pages.page(request, from: $0) } }
      request.documents = page.documents
      (sent, pageCount, position) = (sent + page.batch.documents.count, pageCount + 1, page.batch.documentPosition)
    }
    #expect(sent == 3 && pageCount > 1 && !position.isEmpty)
  }

  @Test("dead letters that only the backend knows of are asked for by a person who does not want to wait")
  func deadLettersBeyond() {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    let now = MonotonicTime(milliseconds: 1)
    _ = forwarder.handle(.start, now: now, random: &random)
    _ = forwarder.handle(.connected, now: now, random: &random)
    var reading = Forwarder.LedgerReading(view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount())
    reading.documents.takeUp([], isAll: false)
    _ = forwarder.handle(.ledgerRead(reading), now: now, random: &random)
    var page = Forwarder.Page()
    (page.isEnd, page.documents) = (true, reading.documents)
    _ = forwarder.handle(.loaded(page), now: now, random: &random)
    #expect(forwarder.handle(.sendNow, now: now, random: &random) == [.readLedger])
  }

  @Test("what is left of a backlog is told by how it shrank in the last minute, and not where it does not")
  func pace() {
    var pace = BacklogPace()
    func at(_ seconds: UInt64) -> MonotonicTime { MonotonicTime(milliseconds: 5_000 + seconds * 1_000) }
    pace.note(10_000, at: at(0))
    pace.note(9_990, at: at(1))
    #expect(pace.millisecondsLeft(of: 9_990) == nil)
    // 100 a second, whatever came to it meanwhile.
    for second in 2...30 { pace.note(10_000 - Int64(second) * 100, at: at(UInt64(second))) }
    #expect(pace.millisecondsLeft(of: 7_000) == 70_000)
    for second in 31...120 { pace.note(7_000 + Int64(second), at: at(UInt64(second))) }
    #expect(pace.millisecondsLeft(of: 7_120) == nil)
    pace.note(0, at: at(121))
    pace.note(500, at: at(122))
    #expect(pace.millisecondsLeft(of: 500) == nil)
  }
}
