import Replication
import Simulation
import Testing

/// Laws over random histories. A failing one names its seed: `MergeHistory(seed:steps:)` gives it again.
@Suite("Merge laws")
struct MergeLawTests {
  private static let seeds: Range<UInt64> = 0..<600

  private static func histories() -> some Sequence<(seed: UInt64, history: MergeHistory)> {
    seeds.lazy.map { ($0, MergeHistory(seed: $0, steps: $0 % 20 < 2 ? 30 : 10)) }
  }

  @Test("all that local writes and the raw generator make is well formed")
  func generatedChangesAreWellFormed() {
    for (seed, history) in Self.histories() {
      for change in history.changes {
        #expect(change.context.malformation(of: change.writes) == nil, "seed \(seed), \(change)")
      }
    }
  }

  @Test("what survives is what the pairwise rule says")
  func survivorsAreThoseOfThePairwiseRule() {
    for (seed, history) in Self.histories() {
      let merged = ReferenceStore.merged(history.changes)
      #expect(merged.mapValues { Set($0.entries) } == PairwiseRule.survivors(history.changes), "seed \(seed)")
    }
  }

  @Test("every order of arrival, with repetitions, gives identical states")
  func everyOrderGivesIdenticalStates() {
    var random = MergeRandom(seed: 3)
    for (seed, history) in Self.histories() {
      let expected = ReferenceStore.merged(history.changes)
      for causal in [true, true, false] {
        let order = random.order(history.changes, causal: causal)
        var store = ReferenceStore(order)
        #expect(store.documents == expected, "seed \(seed), causal \(causal)")
        for change in order.shuffled(using: &random).prefix(3) { store.accept(change) }
        #expect(store.documents == expected, "seed \(seed), repeated")
      }
      #expect(ReferenceStore.merged(history.changes.shuffled(using: &random)) == expected, "seed \(seed), shuffled")
    }
  }

  @Test("a prefix that falls leaves what the rest alone gives, and rising again restores all")
  func fallingPrefixLeavesTheRest() {
    var random = MergeRandom(seed: 4)
    for (seed, history) in Self.histories() where !history.changes.isEmpty {
      var store = ReferenceStore(random.order(history.changes, causal: true))
      let all = store.documents
      let chain = random.pick(history.changes).dot.replica
      let last = UInt64(random.below(Int(store.accepted[chain, default: 1])))
      store.cut(chain, to: last)
      let rest = history.changes.filter { $0.dot.replica != chain || $0.dot.sequence <= last }
      #expect(store.documents == ReferenceStore.merged(rest), "seed \(seed)")
      for change in history.changes { store.accept(change) }
      #expect(store.documents == all, "seed \(seed), raised again")
    }
  }

  @Test("each peer's own way of deliveries and falls leads to the same function of its log")
  func eachPeerHasTheFunctionOfItsLog() {
    for (seed, history) in Self.histories() {
      for peer in history.peers {
        #expect(peer.store.documents == ReferenceStore.merged(peer.store.log), "seed \(seed)")
      }
    }
  }

  @Test("a state survives being stored as groups, in any order of groups")
  func stateSurvivesBeingStoredAsGroups() {
    var random = MergeRandom(seed: 5)
    for (seed, history) in Self.histories() {
      for state in ReferenceStore.merged(history.changes).values {
        let groups = state.groups.shuffled(using: &random)
        #expect(DocumentState(generation: state.generation, groups: groups) == state, "seed \(seed)")
      }
    }
  }

  private struct Place: Hashable {
    let path: [PathSegment]
    let replica: ReplicaID
    let isSum: Bool
  }

  @Test("no concurrent value is lost, and the inbox holds one value and one sum per chain and path")
  func inboxIsCompleteAndBounded() {
    for (seed, history) in Self.histories() {
      for state in ReferenceStore.merged(history.changes).values {
        let (shown, inbox) = (state.rendered(), state.inbox())
        for entry in state.entries where entry.kind == .set || entry.kind == .add {
          if shown[path: entry.path]?.base == entry.value { continue }
          let isListed = inbox.contains { $0.path == entry.path && $0.kind == entry.kind }
          let isSpokenFor = entry.marker != nil && inbox.contains { $0.path.starts(with: entry.path) }
          #expect(isListed || isSpokenFor, "seed \(seed), \(entry)")
        }
        let places = inbox.map { Place(path: $0.path, replica: $0.dot.replica, isSum: $0.kind == .increment) }
        #expect(Set(places).count == places.count, "seed \(seed)")
      }
    }
  }
}

/// Laws of local writes, over the same histories.
@Suite("Local write laws")
struct LocalWriteLawTests {
  private static func histories() -> some Sequence<(seed: UInt64, history: MergeHistory)> {
    (0..<600 as Range<UInt64>).lazy.map { ($0, MergeHistory(seed: $0, steps: 10)) }
  }

  @Test("saving what is shown makes no change")
  func savingWhatIsShownMakesNoChange() throws {
    var random = MergeRandom(seed: 6)
    for (seed, history) in Self.histories() {
      for (key, state) in history.peers[0].store.documents where state.isAlive {
        let write = try LocalWrite.write(
          key.collection, .null, state: state, body: try #require(state.shown()), hints: MergeHistory.hints,
          erase: true, dot: history.nextDot(0), random: &random)
        #expect(write == nil, "seed \(seed)")
      }
    }
  }

  @Test("after a save the document shows what was saved")
  func saveShowsWhatWasSaved() throws {
    for (seed, start) in Self.histories() {
      var history = start
      for (key, state) in history.peers[0].store.documents
      where state.isAlive && key.id == Value.string("d").canonicalBytes {
        let body = history.random.mutated(try #require(state.shown()))
        let write = try LocalWrite.write(
          "c", .string("d"), state: state, body: body, hints: MergeHistory.hints, erase: true,
          dot: history.nextDot(0), random: &history.random)
        guard let write else { continue }
        history.commit([write], by: 0, clock: history.random.below(9))
        let saved = history.peers[0].store.documents[key]
        #expect(saved?.shown().map(Self.inSetOrder) == Self.inSetOrder(body), "seed \(seed)")
      }
    }
  }

  /// A set has no order of its own.
  private static func inSetOrder(_ body: ValueMap) -> ValueMap {
    var body = body
    if case .array(let items)? = body["s"] {
      body["s"] = .array(Set(items).sorted { $0.canonicalBytes.lexicographicallyPrecedes($1.canonicalBytes) })
    }
    return body
  }

  @Test("keeping what is shown closes an entry, changes nothing shown, and empties the inbox in the end")
  func keepingClosesEntries() throws {
    var closed = 0
    for (seed, start) in Self.histories() {
      var history = start
      history.gather(into: 0)
      let key = DocumentKey(collection: "c", id: .string("d"))
      guard let before = history.peers[0].store.documents[key] else { continue }
      for _ in 0..<before.inbox().count + 3 {
        guard let state = history.peers[0].store.documents[key], let conflict = state.inbox().first else { break }
        history.commit(
          [LocalWrite.keep("c", .string("d"), state: state, closing: conflict)], by: 0, clock: 1_000_000)
        let after = try #require(history.peers[0].store.documents[key])
        #expect(!after.inbox().contains(conflict), "seed \(seed), \(conflict)")
        #expect(after.shown() == before.shown(), "seed \(seed), \(conflict)")
        closed += 1
      }
      #expect(history.peers[0].store.documents[key]?.inbox() == [], "seed \(seed)")
    }
    #expect(closed > 500)
  }
}

/// Rules M5 and M6 word by word, for every pair of operations: slow, and independent of how states are computed.
enum PairwiseRule {
  static func survivors(_ changes: [ReferenceChange]) -> [DocumentKey: Set<Entry>] {
    var all: [DocumentKey: [(entry: Entry, context: WriteContext)]] = [:]
    for change in changes {
      for write in change.writes {
        let entries = AcceptedWrite(change.context, write).entries.map { ($0, change.context) }
        all[DocumentKey(write), default: []] += entries
      }
    }
    return all.mapValues { entries in
      Set(
        entries.map(\.entry).filter { entry in
          ![Entry.Kind.create, .delete, .drop].contains(entry.kind)
            && !entries.contains { $0.context.sees(entry.dot) && overrides($0.entry, entry) }
        })
    }
  }

  private static func overrides(_ o: Entry, _ e: Entry) -> Bool {
    if o.kind == .create || o.kind == .delete { return o.generation > e.generation }
    if o.generation < e.generation { return false }
    let same = o.generation == e.generation
    if o.path == e.path {
      switch (o.kind, e.kind, e.value) {
      case (.increment, .increment, _), (.increment, .set, .int?), (.increment, .set, .double?): return !same
      default: return true
      }
    }
    if o.kind == .drop { return false }
    if e.path.starts(with: o.path) { return true }
    guard o.path.starts(with: e.path), o.kind != .remove else { return false }
    let sparing: Value = o.path[e.path.count].isKey ? .map(ValueMap()) : .array([])
    return !(same && e.kind == .set && e.value == sparing)
  }
}
