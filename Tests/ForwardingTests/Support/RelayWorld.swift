import Replication
import TestSupport

@testable import Forwarding

/// Two relays, each with a store and a forwarder, and the ledger between them. One step is one event of one of them, so that
/// anything may happen between a page and its commit.
struct RelayWorld {
  struct Relay {
    var store = ModelStore()
    var forwarder: Forwarder
    var events: [Forwarder.Event] = [.start]
    var hasNews = false
    /// It forwards no more, though its node lives on.
    var isStopped = false
    var isConnected = false
    /// Which device it is: copies of one machine are one.
    var device = 0
    /// Counts its starts.
    var process = 1
  }

  var relays: [Relay]
  var ledger = ModelLedger()
  var random: SplitMix64
  var now = MonotonicTime(milliseconds: 1)
  /// Of 100 calls so many fail before they take effect, and as many after it.
  var failuresOf100 = 0
  /// Documents of one batch.
  var documentRoom = 5
  private var nextCut: UInt64 = 1
  let limits: ForwarderLimits

  init(seed: UInt64, limits: ForwarderLimits) {
    (random, self.limits) = (SplitMix64(seed: seed), limits)
    relays = (0..<2).map { Relay(forwarder: Forwarder(limits: limits), device: $0) }
  }

  // MARK: The fleet

  mutating func write(at relay: Int, chain number: UInt64) {
    let chain = ForwarderModel.chain(number)
    let next = relays[relay].store.received(chain) + 1
    let change = LedgerBatch.Change(
      hash: Digest(words: (number, next, 0, 0)), timestamp: .zero, wallMilliseconds: 0, payloadByteCount: 1)
    relays[relay].store.log.append(
      LedgerBatch.Run(
        chain: chain, first: next, last: next, hashBefore: .zero, hash: change.hash, context: [], body: [1],
        changes: [change]))
    relays[relay].hasNews = true
  }

  mutating func cut(at relay: Int) {
    guard let chain = relays[relay].store.chains.randomElement(using: &random) else { return }
    let last = UInt64.random(in: 0...relays[relay].store.received(chain) + 2, using: &random)
    relays[relay].store.cuts.append(ModelStore.Cut(number: nextCut, chain: chain, last: last))
    nextCut += 1
    relays[relay].hasNews = true
  }

  mutating func meet() {
    let before = relays.map(\.store.position)
    relays[0].store.take(relays[1].store)
    relays[1].store.take(relays[0].store)
    for index in relays.indices where relays[index].store.position != before[index] { relays[index].hasNews = true }
  }

  mutating func restart(_ relay: Int) {
    (relays[relay].forwarder, relays[relay].events) = (Forwarder(limits: limits), [.start])
    relays[relay].process += 1
  }

  // MARK: Steps

  mutating func step(_ index: Int) {
    guard !relays[index].isStopped else { return }
    if relays[index].events.isEmpty { relays[index].events = [next(index)] }
    let event = relays[index].events.removeFirst()
    for directive in relays[index].forwarder.handle(event, now: now, random: &random) {
      if let outcome = perform(directive, index) { relays[index].events.append(outcome) }
    }
  }

  /// Until both wait for something that has not come.
  mutating func settle() {
    for _ in 0..<10_000 {
      let busy = relays.indices.first { index in
        !relays[index].isStopped && (!relays[index].events.isEmpty || relays[index].hasNews)
      }
      guard let busy else { return }
      step(busy)
    }
  }

  /// To a moment when everybody looks again.
  mutating func look() {
    now = now.advanced(byMilliseconds: limits.longestPauseMilliseconds)
    for index in relays.indices where relays[index].events.isEmpty { relays[index].events = [.timer] }
    settle()
  }

  private mutating func next(_ index: Int) -> Forwarder.Event {
    guard relays[index].hasNews else {
      now = now.advanced(byMilliseconds: 500)
      return .timer
    }
    relays[index].hasNews = false
    return .news(relays[index].store.vectors)
  }

  private mutating func fails() -> Bool { Int.random(in: 0..<100, using: &random) < failuresOf100 }

  private mutating func perform(_ directive: Forwarder.Directive, _ index: Int) -> Forwarder.Event? {
    switch directive {
    case .disconnect: return nil
    case .connect: return fails() ? .failed(BackendProblem(.noRoute, "no way")) : .connected
    case .readLedger: return fails() ? .failed(BackendProblem(.refused, "lost")) : .ledgerRead(reading(index))
    case .readBack(let request): return fails() ? .failed(BackendProblem(.refused, "lost")) : readBack(request, index)
    case .load(let request):
      return .loaded(ModelPages(store: relays[index].store, documentRoom: documentRoom).page(request))
    case .commit(let batch):
      if fails() { return .failed(BackendProblem(.refused, "lost before")) }
      let ids = Set(batch.statements.map(\.id))
      switch ledger.append(batch, relays[index].store.cuts.filter { ids.contains($0.id) }, by: relays[index].device) {
      case .failure(let problem): return .failed(problem)
      case .success(let outcome): return fails() ? .failed(BackendProblem(.refused, "lost after")) : .committed(outcome)
      }
    }
  }

  private func reading(_ index: Int) -> Forwarder.LedgerReading {
    let store = relays[index].store
    var view = LedgerView()
    view.statements = Set(ledger.store.cuts.map(\.id))
    for chain in store.chains {
      view.highest[chain] = ledger.store.received(chain)
      view.reached[chain] = min(ledger.store.received(chain), store.received(chain))
      view.marks[chain] = ledger.marks[chain]?.position
    }
    view.readAt = Int64(store.log.count)
    var reading = Forwarder.LedgerReading(view: view, runsAfter: 0, accepted: store.vectors, held: LogAmount())
    let start = ledger.start(of: relays[index].device, process(of: index))
    (reading.documents, reading.step, reading.batches) = (DocumentProgress(start), start.step, start.ledger.batches)
    reading.documents.resume(as: process(of: index), nil)
    return reading
  }

  /// Of chains a ledger that went back is found by its gaps alone.
  private func readBack(_ request: ReadBackRequest, _ index: Int) -> Forwarder.Event {
    var outcome = ReadBackOutcome()
    if request == .everything {
      let news = ledger.news(of: relays[index].device, process(of: index))
      outcome.documents = news
      let held = ModelStore.sum(relays[index].store.cuts.map(\.id))
      if news.ledger.statements != held { outcome.statements = Set(ledger.store.cuts.map(\.id)) }
    }
    return .readBack(outcome)
  }

  private func process(of index: Int) -> String { "\(index).\(relays[index].process)" }
}
