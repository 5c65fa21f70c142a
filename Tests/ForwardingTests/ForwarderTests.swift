import Replication
import TestSupport
import Testing

@testable import Forwarding

@Suite("What a forwarder decides")
struct ForwarderTests {
  private func model(seed: UInt64 = 1, _ change: (inout ForwarderLimits) -> Void = { _ in }) -> ForwarderModel {
    var limits = ForwarderLimits()
    change(&limits)
    return ForwarderModel(seed: seed, limits: limits)
  }

  @Test("the ledger is read before anything is sent, then has the log in its order and each chain's mark")
  func catchesUp() {
    var model = model()
    for number in 0..<50 { model.write(chain: UInt64(number % 4), changes: 3) }
    model.tell(.start)
    #expect(model.asked.prefix(3) == ["connect", "read", "commit"])
    #expect(model.ledger == model.log)
    #expect(model.forwarder.state == .caughtUp && model.forwarder.lag == LogAmount())
    for (partition, vector) in model.accepted {
      for (replica, position) in vector.entries {
        #expect(model.marks[ChainKey(partition: partition, replica: replica)] == position)
      }
    }
  }

  @Test("whatever fails, and however often, the ledger comes to hold the log, each run once", arguments: 0..<200)
  func faults(seed: Int) {
    var model = model(seed: UInt64(seed)) { $0.batchChanges = 8 }
    model.failuresOf100 = 30
    model.tell(.start)
    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0...4, using: &model.random) {
        model.write(chain: .random(in: 0..<5, using: &model.random), changes: .random(in: 1...3, using: &model.random))
      }
      if Bool.random(using: &model.random) { model.tell(.news(model.accepted)) } else { model.wait() }
    }
    model.failuresOf100 = 0
    // Every commit is told.
    model.tell(.news(model.accepted))
    for _ in 0..<3 { model.wait() }
    #expect(Set(model.ledger.map(\.hash)) == Set(model.log.map(\.hash)) && model.ledger.count == model.log.count)
    #expect(model.forwarder.state == .caughtUp, "seed \(seed)")
    for (partition, vector) in model.accepted {
      for (replica, position) in vector.entries {
        #expect(model.marks[ChainKey(partition: partition, replica: replica)] == position, "seed \(seed)")
      }
    }
  }

  @Test("after a lost connection the ledger is asked before anything is sent again")
  func unknownOutcome() {
    var model = model()
    model.write(chain: 1)
    model.tell(.start)
    model.write(chain: 1)
    let random = model.random
    model.failuresOf100 = 100
    model.tell(.news(model.accepted))
    #expect(model.forwarder.state == .refused)
    (model.failuresOf100, model.random) = (0, random)
    model.wait()
    #expect(model.asked.suffix(3) == ["connect", "read", "commit"])
    #expect(model.ledger.count == 2)
  }

  @Test("pauses double up to their ceiling, differ, and end at once when somebody does not want to wait")
  func backOff() {
    var model = model(seed: 4)
    model.failuresOf100 = 100
    model.tell(.start)
    var pauses: [UInt64] = []
    for _ in 0..<12 {
      pauses.append(model.forwarder.nextWake?.millisecondsSince(model.now) ?? 0)
      model.wait()
    }
    let limits = model.forwarder.limits
    for (index, pause) in pauses.enumerated() {
      let most = min(limits.firstPauseMilliseconds << UInt64(index), limits.longestPauseMilliseconds)
      #expect((most / 2...most).contains(pause))
    }
    #expect(Set(pauses.suffix(3)).count == 3)
    let asked = model.asked.count
    model.tell(.timer)
    #expect(model.asked.count == asked)
    model.failuresOf100 = 0
    model.tell(.sendNow)
    #expect(model.forwarder.state == .caughtUp)
  }

  @Test("a batch stays within its limits but for its last run, whatever waits")
  func limits() {
    var model = model { ($0.batchChanges, $0.batchBytes) = (100, 400) }
    for number in 0..<1_000 { model.write(chain: UInt64(number % 7), changes: 1 + number % 3) }
    model.tell(.start)
    #expect(model.ledger.count == 1_000)
    #expect(model.batches.allSatisfy { $0.amount.bytes < 400 + 30 && $0.amount.changes < 100 + 3 })
  }

  @Test("a run that does not go on from what the ledger has, also once that was read anew, is put aside with its chain")
  func gap() {
    var model = model()
    for number in 0..<40 { model.write(chain: UInt64(number % 4)) }
    // It was passed over: its row does not tell that it is to be sent.
    let bad = ForwarderModel.chain(2)
    model.log.removeAll { $0.chain == bad && $0.first == 4 }
    model.tell(.start)
    for _ in 0..<12 where model.ledger.count < 33 { model.wait() }
    #expect(model.forwarder.view.aside.keys.elementsEqual([bad]) && model.forwarder.state == .lagging)
    #expect(model.ledger.filter { $0.chain != bad } == model.log.filter { $0.chain != bad })
    #expect(model.ledger.count { $0.chain == bad } == 3)
  }

  @Test(
    "where marks come beside a document and the batch is refused, it is looked for the one that is, and not the document blamed"
  )
  func marksBesideDocument() {
    var (model, random) = (model(), SplitMix64(seed: 7))
    model.write(chain: 1)
    var forwarder = model.forwarder
    let reading = Forwarder.LedgerReading(
      view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount(changes: 1, bytes: 10))
    for event in [.start, .connected, .ledgerRead(reading), .readBack(ReadBackOutcome(wentBack: false))]
      as [Forwarder.Event]
    {
      _ = forwarder.handle(event, now: model.now, random: &random)
    }
    var page = Forwarder.Page()
    let chain = ForwarderModel.chain(1)
    page.batch.marks = [LedgerBatch.Mark(chain: chain, position: ChainPosition(sequence: 1, tip: .zero))]
    var document = LedgerBatch.Document(
      DocumentPlace(partition: chain.partition, key: DocumentKey(collection: "c", id: [1])))
    document.isAlive = true
    page.batch.documents = [document]
    _ = forwarder.handle(.loaded(page), now: model.now, random: &random)
    let next = forwarder.handle(.failed(BackendProblem(.rejected, "not this one")), now: model.now, random: &random)
    guard case .load(let request)? = next.first else { return #expect(Bool(false), "\(next)") }
    #expect(request.isNarrowed && request.documents.refusals.isEmpty && request.view.aside.isEmpty)
  }

  @Test("a chain with a run that does not read is put aside once what lies before it is in, not when it is sent")
  func unread() {
    var (model, random) = (model(), SplitMix64(seed: 7))
    model.write(chain: 1)
    model.write(chain: 2)
    var forwarder = model.forwarder
    let reading = Forwarder.LedgerReading(
      view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount(changes: 3, bytes: 30))
    for event in [.start, .connected, .ledgerRead(reading), .readBack(ReadBackOutcome(wentBack: false))]
      as [Forwarder.Event]
    {
      _ = forwarder.handle(event, now: model.now, random: &random)
    }
    var page = Forwarder.Page()
    (page.batch.runs, page.runsEnd) = (model.log, 3)
    let chain = ForwarderModel.chain(1)
    page.unread = [chain: RefusedRow(2...2, "does not read")]
    func asideWhenLoading(_ event: Forwarder.Event) -> [ChainKey: RefusedRow]? {
      for case .load(let request) in forwarder.handle(event, now: model.now, random: &random) {
        return request.view.aside
      }
      return nil
    }
    #expect(asideWhenLoading(.loaded(page)) == nil)
    #expect(asideWhenLoading(.failed(BackendProblem(.rejected, "not this one"))) == [:])
    page.batch.runs.removeLast()
    #expect(asideWhenLoading(.loaded(page)) == nil)
    _ = asideWhenLoading(.committed(AppendOutcome()))
    #expect(asideWhenLoading(.readBack(ReadBackOutcome(wentBack: false))) ?? forwarder.view.aside == page.unread)
  }

  @Test("what a backend rejects is found among the others and put aside with its chain; all others arrive")
  func rejected() {
    var model = model()
    for number in 0..<400 { model.write(chain: UInt64(number % 8), changes: 2) }
    let bad = ForwarderModel.chain(5)
    model.rejects = { $0.chain == bad && $0.first == 21 }
    model.tell(.start)
    #expect(model.forwarder.view.aside == [bad: RefusedRow(21...22, "not this one")])
    #expect(model.forwarder.state == .lagging && model.forwarder.lag.changes == 80)
    #expect(model.ledger.filter { $0.chain != bad } == model.log.filter { $0.chain != bad })
    #expect(model.ledger.filter { $0.chain == bad }.count == 10)
    // Batches are whole again afterwards.
    for number in 0..<400 { model.write(chain: UInt64(number % 5)) }
    let before = model.batches.count
    model.tell(.news(model.accepted))
    #expect(model.batches.count - before < 20)
    // Tried again once its time has come.
    model.rejects = { _ in false }
    model.now = model.now.advanced(byMilliseconds: model.forwarder.limits.asideMilliseconds)
    model.tell(.timer)
    #expect(model.forwarder.state == .caughtUp && model.ledger.count == model.log.count)
  }

  @Test("where a batch takes a backend too long the next is half of it, down to one change, and whole again in the end")
  func tooSlow() {
    for most in [1, 3, 50] {
      var model = model { $0.batchChanges = 64 }
      for number in 0..<300 { model.write(chain: UInt64(number % 4)) }
      model.takesAtOnce = most
      model.tell(.start)
      #expect(model.ledger == model.log && model.marks.count == 4 && model.forwarder.state == .caughtUp)
      // At once, on one connection; larger ones are tried seldom.
      #expect(model.asked.count { $0 == "connect" } == 1)
      let failed = model.asked.count { $0 == "commit" } - model.batches.count
      #expect(failed > 0 && failed < 12 + model.batches.count / 8, "\(failed) of \(model.batches.count)")
      model.takesAtOnce = .max
      for number in 0..<800 { model.write(chain: UInt64(number % 4)) }
      model.tell(.news(model.accepted))
      #expect(model.ledger.count == model.log.count)
      #expect(model.batches.contains { $0.runs.count == 64 })
    }
  }

  @Test("where one change alone takes a backend too long it is tried again after pauses that grow")
  func everythingTooSlow() {
    var model = model()
    for number in 0..<300 { model.write(chain: UInt64(number % 4)) }
    model.takesAtOnce = 0
    model.tell(.start)
    #expect(model.forwarder.state == .refused && model.forwarder.nextWake != nil)
    #expect(model.asked.count { $0 == "commit" } < 15)
    model.wait()
    #expect(model.asked.suffix(3) == ["connect", "read", "commit"] && model.ledger.isEmpty)
    model.takesAtOnce = .max
    model.wait()
    #expect(model.ledger.count == model.log.count && model.forwarder.state == .caughtUp)
  }

  @Test("a mark that another relay keeps is sent again at the next look, and not before")
  func staleMark() {
    var model = model()
    for number in 0..<4 { model.write(chain: UInt64(number)) }
    let kept = ForwarderModel.chain(2)
    model.keeps = { $0.chain == kept }
    model.tell(.start)
    #expect(model.marks.count == 3 && model.marks[kept] == nil && model.batches.count == 1)
    #expect(model.forwarder.state == .caughtUp)
    // What was sent is read back first.
    model.wait()
    #expect(model.batches.count == 1)
    model.now = model.now.advanced(byMilliseconds: model.forwarder.limits.lookMilliseconds)
    model.tell(.timer)
    #expect(model.batches.count == 2 && model.batches.last?.marks.map(\.chain) == [kept])
    model.keeps = { _ in false }
    // News of something else is an occasion, too.
    model.write(chain: 1)
    model.tell(.news(model.accepted.filter { $0.key == ForwarderModel.chain(1).partition }))
    #expect(model.marks[kept]?.sequence == 1)
    let count = model.batches.count
    model.wait()
    #expect(model.batches.count == count)
  }

  @Test("more marks than a batch has, all of which another relay keeps, are each sent once between two looks")
  func manyStaleMarks() {
    var limits = ForwarderLimits()
    limits.batchMarks = 2
    var model = ForwarderModel(seed: 1, limits: limits)
    for number in 0..<9 { model.write(chain: UInt64(number)) }
    model.keeps = { _ in true }
    model.tell(.start)
    #expect(model.forwarder.state == .caughtUp && model.marks.isEmpty)
    #expect(model.batches.flatMap(\.marks).count == 9)
    model.keeps = { _ in false }
    model.wait()
    model.now = model.now.advanced(byMilliseconds: limits.lookMilliseconds)
    model.tell(.timer)
    #expect(model.marks.count == 9)
  }

  @Test("a mark that another relay keeps is sent again at once where news came while it was under way")
  func staleMarkAndNews() {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    let now = MonotonicTime(milliseconds: 1)
    let (chain, other) = (ForwarderModel.chain(1), ForwarderModel.chain(2))
    let vector = VersionVector([chain.replica: ChainPosition(sequence: 1, tip: .zero)])
    _ = forwarder.handle(.start, now: now, random: &random)
    _ = forwarder.handle(.connected, now: now, random: &random)
    let reading = Forwarder.LedgerReading(
      view: LedgerView(), runsAfter: 0, accepted: [chain.partition: vector], held: LogAmount())
    _ = forwarder.handle(.ledgerRead(reading), now: now, random: &random)
    var page = Forwarder.Page()
    page.batch.marks = [LedgerBatch.Mark(chain: chain, position: ChainPosition(sequence: 1, tip: .zero))]
    (page.isEnd, page.marked) = (true, [chain.partition: vector])
    _ = forwarder.handle(.loaded(page), now: now, random: &random)
    _ = forwarder.handle(.news([other.partition: VersionVector()]), now: now, random: &random)
    var outcome = AppendOutcome()
    outcome.staleMarks = [0]
    let (first, second) = (
      forwarder.handle(.committed(outcome), now: now, random: &random),
      forwarder.handle(.loaded(Forwarder.Page()), now: now, random: &random)
    )
    let requests = (first + second).compactMap { directive -> Forwarder.LoadRequest? in
      if case .load(let request) = directive { request } else { nil }
    }
    #expect(requests.contains { $0.unmarked[chain.partition] == vector })
  }

  @Test("a ledger that went back is filled again, and what it had lost is told")
  func wentBack() {
    var model = model()
    for _ in 0..<30 { model.write(chain: 1) }
    model.tell(.start)
    #expect(model.forwarder.lost == 0)
    model.ledger.removeLast(12)
    model.write(chain: 1)
    // The run that comes next does not join: the ledger says so.
    model.tell(.news(model.accepted))
    model.wait()
    #expect(model.forwarder.lost == 12)
    #expect(model.ledger.count == 31 && model.forwarder.state == .caughtUp)
  }

  @Test(
    "what the ledger has is read back: all of it after connecting, then what was sent, every few seconds at the most")
  func readsBack() {
    var model = model()
    for number in 0..<4 { model.write(chain: UInt64(number)) }
    model.tell(.start)
    #expect(model.readBacks == [.everything])
    model.wait()
    let sent = Set((0..<4).map { ForwarderModel.chain(UInt64($0)) })
    #expect(model.readBacks == [.everything, .chains(sent)])
    for _ in 0..<10 {
      model.write(chain: 2)
      model.tell(.news(model.accepted))
    }
    #expect(model.readBacks.count == 2 && model.forwarder.state == .caughtUp)
    model.now = model.now.advanced(byMilliseconds: model.forwarder.limits.readBackMilliseconds)
    model.tell(.timer)
    #expect(model.readBacks.last == .chains([ForwarderModel.chain(2)]) && model.readBacks.count == 3)
    // A connection that was lost: nobody knows what else was.
    model.write(chain: 1)
    let random = model.random
    model.failuresOf100 = 100
    model.tell(.news(model.accepted))
    (model.failuresOf100, model.random) = (0, random)
    let before = model.readBacks.count
    model.wait()
    #expect(model.readBacks.dropFirst(before).first == .everything)
    let read = model.readBacks.count
    model.tell(.sendNow)
    #expect(model.readBacks.dropFirst(read) == [.everything], "who does not want to wait hears of everything")
  }

  @Test("a ledger that went back while nothing was sent is found, and filled again")
  func wentBackAtRest() {
    var model = model()
    for _ in 0..<30 { model.write(chain: 1) }
    model.tell(.start)
    model.wait()
    model.ledger.removeLast(12)
    for _ in 0..<25 { model.wait() }
    #expect(model.forwarder.lost == 12)
    #expect(model.ledger.count == 30 && model.forwarder.state == .caughtUp)
  }

  @Test("every batch goes on from the one before it, whatever is in it, and by its number it is known again")
  func steps() {
    var model = model { $0.batchChanges = 4 }
    for number in 0..<20 { model.write(chain: UInt64(number % 3)) }
    model.tell(.start)
    let steps = model.batches.map(\.step)
    #expect(steps.count > 3 && steps.map { $0?.number } == (1...UInt64(steps.count)).map { $0 })
    #expect(steps.map { $0?.before } == (0..<UInt64(steps.count)).map { $0 })
  }

  @Test("a ledger with fewer batches, or without statements, than it had is read anew, whoever had brought them")
  func batchesLost() {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    var now = MonotonicTime(milliseconds: 1)
    func tell(_ event: Forwarder.Event) -> [Forwarder.Directive] { forwarder.handle(event, now: now, random: &random) }
    func told(_ batches: UInt64, _ statements: Set<Digest>? = nil) -> Forwarder.Event {
      var (outcome, news) = (ReadBackOutcome(), DocumentNews())
      news.ledger.batches = batches
      (outcome.documents, outcome.statements) = (news, statements)
      return .readBack(outcome)
    }
    var view = LedgerView()
    view.statements = [Digest(words: (1, 0, 0, 0))]
    var reading = Forwarder.LedgerReading(view: view, runsAfter: 0, accepted: [:], held: LogAmount())
    reading.batches = 7
    for event in [Forwarder.Event.start, .connected] { _ = tell(event) }
    #expect(tell(.ledgerRead(reading)) == [.readBack(.everything)])
    _ = tell(told(9, [Digest(words: (1, 0, 0, 0)), Digest(words: (2, 0, 0, 0))]))
    var page = Forwarder.Page()
    page.isEnd = true
    _ = tell(.loaded(page))
    for (outcome, isWhole) in [(told(9), true), (told(8), false), (told(9, []), false)] {
      guard case .idle = forwarder.phase else { return #expect(Bool(false), "\(forwarder.phase)") }
      now = now.advanced(byMilliseconds: forwarder.limits.readEverythingMilliseconds)
      var directives = tell(.timer)
      if case .load? = directives.first { directives = tell(.loaded(page)) }
      #expect(directives == [.readBack(.everything)])
      directives = tell(outcome)
      #expect((directives == [.readLedger]) == !isWhole)
      guard !isWhole else { continue }
      reading.batches = 9
      _ = tell(.ledgerRead(reading))
      _ = tell(told(9))
      _ = tell(.loaded(page))
      #expect(forwarder.lost == 0 && forwarder.state == .caughtUp)
    }
  }

  @Test("documents of a relay that lacked something are sent when a reading tells of them")
  func unsureDocuments() {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    var now = MonotonicTime(milliseconds: 1)
    func tell(_ event: Forwarder.Event) -> [Forwarder.Directive] { forwarder.handle(event, now: now, random: &random) }
    func told(_ places: [DocumentPlace]) -> Forwarder.Event {
      var (outcome, news) = (ReadBackOutcome(), DocumentNews())
      news.unsure = places
      outcome.documents = news
      return .readBack(outcome)
    }
    var page = Forwarder.Page()
    page.isEnd = true
    for event in [Forwarder.Event.start, .connected] { _ = tell(event) }
    _ = tell(.ledgerRead(Forwarder.LedgerReading(view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount())))
    _ = tell(told([]))
    _ = tell(.loaded(page))
    let place = DocumentPlace(partition: PartitionID(.zero), key: DocumentKey(collection: "c", id: [1]))
    for places in [[], [place], []] {
      now = now.advanced(byMilliseconds: forwarder.limits.readEverythingMilliseconds)
      if case .load? = tell(.timer).first { _ = tell(.loaded(page)) }
      guard case .load(let request)? = tell(told(places)).first else {
        #expect(places.isEmpty)
        continue
      }
      #expect(!places.isEmpty && request.documents.due == Set(places))
      _ = tell(.loaded(page))
    }
  }

  @Test("where a reading shows other statements elsewhere, what the backend left alone is sent again")
  func statementsElsewhere() {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    var now = MonotonicTime(milliseconds: 1)
    func tell(_ event: Forwarder.Event) -> [Forwarder.Directive] { forwarder.handle(event, now: now, random: &random) }
    func told(_ numbers: [UInt64]) -> Forwarder.Event {
      var outcome = ReadBackOutcome()
      outcome.elsewhere = numbers.map {
        StatementPlace(issuer: PublicKey(.zero), scope: "", sequence: $0, id: Digest(words: ($0, 0, 0, 0)))
      }
      return .readBack(outcome)
    }
    var page = Forwarder.Page()
    page.isEnd = true
    for event in [Forwarder.Event.start, .connected] { _ = tell(event) }
    _ = tell(.ledgerRead(Forwarder.LedgerReading(view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount())))
    _ = tell(told([1]))
    _ = tell(.loaded(page))
    for (numbers, isNew) in [([1], false), ([1, 2], true), ([1, 2], false), ([], true)] as [([UInt64], Bool)] {
      now = now.advanced(byMilliseconds: forwarder.limits.readEverythingMilliseconds)
      if case .load? = tell(.timer).first { _ = tell(.loaded(page)) }
      guard case .load(let request)? = tell(told(numbers)).first else {
        #expect(!isNew)
        continue
      }
      #expect(isNew && request.view.elsewhere.map(\.sequence) == numbers)
      _ = tell(.loaded(page))
    }
  }

  @Test(
    "a mark that was set to something else unnoticed is set right when everything is read back",
    arguments: [false, true])
  func markSetByOthers(isGone: Bool) {
    var model = model()
    for _ in 0..<5 { model.write(chain: 1) }
    model.tell(.start)
    let chain = ForwarderModel.chain(1)
    let right = model.marks[chain]
    #expect(right?.sequence == 5)
    model.marks[chain] = isGone ? nil : ChainPosition(sequence: 3, tip: .zero)
    let end = model.now.advanced(byMilliseconds: 2 * model.forwarder.limits.readEverythingMilliseconds)
    while model.now < end { model.wait() }
    #expect(model.marks[chain] == right)
    #expect(model.forwarder.state == .caughtUp)
  }

  @Test("what the ledger had by what was remembered, and lacks, is told at the first reading")
  func lostByMemory() {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    let now = MonotonicTime(milliseconds: 1)
    _ = forwarder.handle(.start, now: now, random: &random)
    _ = forwarder.handle(.connected, now: now, random: &random)
    var reading = Forwarder.LedgerReading(view: LedgerView(), runsAfter: 0, accepted: [:], held: LogAmount())
    reading.lost = 7
    _ = forwarder.handle(.ledgerRead(reading), now: now, random: &random)
    #expect(forwarder.lost == 7)
  }

  @Test("what is remembered reads as it was written, and nothing else does")
  func memory() {
    let memory = LedgerMemory(ledger: "ab12", position: "0.17.2", writer: "9f")
    #expect(LedgerMemory(text: memory.text) == memory)
    for text in ["", "ab12", "ab12 0.1.2", "ab12 0.1.2 x y"] { #expect(LedgerMemory(text: text) == nil) }
  }

  @Test("what moves while a batch is under way is looked at after it")
  func newsMeanwhile() throws {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    let now = MonotonicTime(milliseconds: 1)
    _ = forwarder.handle(.start, now: now, random: &random)
    _ = forwarder.handle(.connected, now: now, random: &random)
    let partition = PartitionID(.zero)
    func vector(_ sequence: UInt64) -> VersionVector {
      VersionVector([ReplicaID(high: 1, low: 1): ChainPosition(sequence: sequence, tip: .zero)])
    }
    let reading = Forwarder.LedgerReading(
      view: LedgerView(), runsAfter: 0, accepted: [partition: vector(1)], held: LogAmount())
    _ = forwarder.handle(.ledgerRead(reading), now: now, random: &random)
    var page = Forwarder.Page()
    page.batch.statements = [LedgerBatch.Statement(id: .zero, encoded: [1])]
    (page.isEnd, page.marked) = (true, [partition: vector(1)])
    _ = forwarder.handle(.loaded(page), now: now, random: &random)
    #expect(forwarder.handle(.news([partition: vector(2)]), now: now, random: &random) == [])
    guard case .load(let request)? = forwarder.handle(.committed(AppendOutcome()), now: now, random: &random).first
    else {
      Issue.record("nothing is loaded")
      return
    }
    #expect(request.unmarked == [partition: vector(2)])
  }

  @Test("a mark that another relay kept is not sent again in place of a newer one", arguments: [false, true])
  func newsOfStaleMark(isWhileCommitting: Bool) throws {
    var (forwarder, random) = (Forwarder(), SplitMix64(seed: 1))
    let now = MonotonicTime(milliseconds: 1)
    let (partition, replica) = (PartitionID(.zero), ReplicaID(high: 1, low: 1))
    func vector(_ sequence: UInt64) -> VersionVector {
      VersionVector([replica: ChainPosition(sequence: sequence, tip: .zero)])
    }
    func page(_ sequence: UInt64) -> Forwarder.Page {
      var page = Forwarder.Page()
      let chain = ChainKey(partition: partition, replica: replica)
      page.batch.marks = [LedgerBatch.Mark(chain: chain, position: ChainPosition(sequence: sequence, tip: .zero))]
      (page.isEnd, page.marked) = (true, [partition: vector(sequence)])
      return page
    }
    var (empty, kept) = (Forwarder.Page(), AppendOutcome())
    empty.isEnd = true
    kept.staleMarks = [0]
    func tell(_ event: Forwarder.Event, at now: MonotonicTime) -> [Forwarder.Directive] {
      var directives = forwarder.handle(event, now: now, random: &random)
      while case .readBack? = directives.first {
        directives = forwarder.handle(.readBack(ReadBackOutcome()), now: now, random: &random)
      }
      return directives
    }
    _ = tell(.start, at: now)
    _ = tell(.connected, at: now)
    let reading = Forwarder.LedgerReading(
      view: LedgerView(), runsAfter: 0, accepted: [partition: vector(5)], held: LogAmount())
    _ = tell(.ledgerRead(reading), at: now)
    _ = tell(.loaded(page(5)), at: now)
    if isWhileCommitting { _ = tell(.news([partition: vector(2)]), at: now) }
    _ = tell(.committed(kept), at: now)
    if !isWhileCommitting { _ = tell(.news([partition: vector(2)]), at: now) }
    _ = tell(.loaded(page(2)), at: now)
    _ = tell(.committed(AppendOutcome()), at: now)
    _ = tell(.loaded(empty), at: now)
    let look = now.advanced(byMilliseconds: forwarder.limits.lookMilliseconds)
    guard case .load(let request)? = tell(.timer, at: look).first else {
      Issue.record("nothing is loaded")
      return
    }
    #expect(request.unmarked.isEmpty)
  }
}

@Suite("Where a ledger and a store part")
struct ChainComparisonTests {
  private let chain = ForwarderModel.chain(1)
  private func hash(_ number: UInt64, branch: UInt64 = 0) -> Digest { Digest(words: (number, branch, 0, 0)) }

  private func reached(_ answer: ChainAnswer, stored: UInt64 = 10) -> UInt64 {
    let question = ChainQuestion(chain: chain, sequence: stored, hash: hash(stored))
    return ChainComparison.reached(question, answer) { $0 <= stored ? hash($0) : nil }
  }

  @Test("a ledger is known to hold what it has of this store's own branch, and nothing where it has another")
  func comparison() {
    var answer = ChainAnswer()
    #expect(reached(answer) == 0)
    (answer.hasChange, answer.highest, answer.hashes) = (true, 14, [hash(14)])
    #expect(reached(answer) == 10)
    (answer.hasChange, answer.highest, answer.hashes) = (false, 6, [hash(6)])
    #expect(reached(answer) == 6)
    answer.hashes = [hash(6, branch: 1)]
    #expect(reached(answer) == 0)
    answer.hashes = [hash(6, branch: 1), hash(6)]
    #expect(reached(answer) == 6)
    // Another branch, as long as this one or longer.
    (answer.highest, answer.hashes) = (10, [hash(10, branch: 1)])
    #expect(reached(answer) == 0)
    (answer.highest, answer.hashes) = (12, [hash(12)])
    #expect(reached(answer) == 0)
  }
}
