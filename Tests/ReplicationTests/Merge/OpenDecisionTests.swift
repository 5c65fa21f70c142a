import Replication
import Simulation
import Testing

/// What somebody decides about conflicts, over random histories.
@Suite("Decisions about conflicts")
struct OpenDecisionTests {
  private static let key = DocumentKey(collection: "c", id: .string("d"))

  /// Histories that somebody has gathered whole, with what is there to decide.
  private static func open() -> some Sequence<(seed: UInt64, history: MergeHistory, state: DocumentState)> {
    (0..<400 as Range<UInt64>).lazy.compactMap { seed in
      var history = MergeHistory(seed: seed, steps: 12)
      history.gather(into: 0)
      guard let state = history.peers[0].store.documents[key], !state.inbox().isEmpty else { return nil }
      return (seed, history, state)
    }
  }

  /// A set has no order of its own.
  private static func inSetOrder(_ body: ValueMap?) -> ValueMap? {
    guard var body else { return nil }
    if case .array(let items)? = body["s"] {
      body["s"] = .array(Set(items).sorted { $0.canonicalBytes.lexicographicallyPrecedes($1.canonicalBytes) })
    }
    return body
  }

  private func decide(
    _ body: ValueMap?, _ decision: OpenDecision, _ state: DocumentState, _ history: inout MergeHistory
  ) throws -> DocumentState {
    let write = try LocalWrite.decide(
      "c", .string("d"), state: state, body: body, closing: decision.conflicts, dot: history.nextDot(0),
      random: &history.random)
    if let write { history.commit([write], by: 0, clock: 1_000_000) }
    return try #require(history.peers[0].store.documents[Self.key])
  }

  @Test(
    "every conflict of the inbox is in one decision, and keeping closes all of that decision and changes nothing shown")
  func keeping() throws {
    var count = 0
    for (seed, start, state) in Self.open() {
      let decisions = state.openDecisions()
      // What no writer makes may hide something of the same replica.
      if start.mode == .raw, !state.mayHaveConflicts { continue }
      #expect(Set(decisions.flatMap(\.conflicts)) == Set(state.inbox()), "seed \(seed)")
      #expect(Set(decisions.map(\.place)).count == decisions.count, "seed \(seed)")
      for decision in decisions {
        var history = start
        let after = try decide(state.shown(), decision, state, &history)
        #expect(after.shown() == state.shown(), "seed \(seed), \(decision.place)")
        #expect(Set(after.inbox()).isDisjoint(with: decision.conflicts), "seed \(seed), \(decision.place)")
        count += 1
      }
    }
    #expect(count > 350)
  }

  @Test("what is named as written last of what a decision shows made it, or took it out")
  func lastWrites() {
    var (made, within, removed) = (0, 0, 0)
    for (seed, start, state) in Self.open() where state.isAlive && start.mode != .raw {
      let writes = ShownWrites(state)
      for decision in state.openDecisions() {
        guard let entry = writes.last(at: decision.place) else { continue }
        let comment = Comment(rawValue: "seed \(seed), \(decision.place), \(entry)")
        switch decision.shown {
        case nil:
          #expect(entry.kind == .remove, comment)
          removed += 1
        case .map?, .array?:
          #expect(entry.kind != .remove && entry.path.starts(with: decision.place), comment)
          within += 1
        case .int?, .double?:
          // What was set, and increments of it.
          #expect(entry.path == decision.place, comment)
          made += 1
        case let shown?:
          #expect(entry.path == decision.place && entry.value == shown, comment)
          made += 1
        }
      }
    }
    #expect(made > 20 && within > 20 && removed > 0, "\((made, within, removed))")
  }

  @Test("what is taken instead is shown, and all of its decision is closed")
  func taking() throws {
    var (count, refused) = (0, 0)
    for (seed, start, state) in Self.open() {
      for decision in state.openDecisions() {
        for conflict in decision.conflicts {
          guard case .map(let body)? = state.rendered().taking([conflict])?.value else {
            refused += 1
            continue
          }
          var history = start
          let after = try decide(body, decision, state, &history)
          #expect(Self.inSetOrder(after.shown()) == Self.inSetOrder(body), "seed \(seed), \(conflict)")
          #expect(Set(after.inbox()).isDisjoint(with: decision.conflicts), "seed \(seed), \(conflict)")
          if conflict.kind == .set, conflict.value != .map(ValueMap()), conflict.value != .array([]),
            !conflict.path.contains(where: { !$0.isKey })
          {
            #expect(after.rendered()[path: conflict.path]?.value == conflict.value, "seed \(seed), \(conflict)")
          }
          count += 1
        }
      }
    }
    #expect(count > 500 && refused < count / 20)
  }

  @Test("another value is shown at the place, and all of its decision is closed")
  func another() throws {
    var count = 0
    for (seed, start, state) in Self.open() {
      for decision in state.openDecisions() where !decision.place.isEmpty && decision.place.last?.isMember == false {
        let wished = state.rendered().setting(decision.place[...], to: .string("another"))
        guard case .map(let body) = wished.value else { continue }
        var history = start
        let after = try decide(body, decision, state, &history)
        #expect(Self.inSetOrder(after.shown()) == Self.inSetOrder(body), "seed \(seed), \(decision.place)")
        #expect(Set(after.inbox()).isDisjoint(with: decision.conflicts), "seed \(seed), \(decision.place)")
        count += 1
      }
    }
    #expect(count > 300)
  }

  @Test("what hides others is told with them, in one decision, at the place where they are hidden")
  func hiddenBelow() throws {
    let (a, b, x, y) = (PathSegment.key("a"), PathSegment.key("b"), PathSegment.key("x"), PathSegment.key("y"))
    func write(_ replica: UInt64, _ operations: [Operation], seeing: VersionVector = VersionVector()) -> AcceptedWrite {
      AcceptedWrite(
        WriteContext(
          dot: Dot(replica: ReplicaID(high: replica, low: 0), sequence: 1),
          timestamp: HybridTimestamp(rawValue: replica), context: seeing),
        DocumentWrite(collection: "c", id: .string("d"), kind: .create, generation: 1, operations: operations))
    }
    let empty = Value.map(ValueMap())
    let state = DocumentState.merged(of: [
      write(
        1,
        [
          Operation(.set, [a], value: empty), Operation(.set, [a, x], value: .int(1)),
          Operation(.set, [b], value: .int(1)),
        ]),
      write(2, [Operation(.set, [a], value: empty), Operation(.set, [a, y], value: .int(2))]),
      write(3, [Operation(.set, [a], value: .int(3)), Operation(.set, [b], value: .int(3))]),
    ])
    let decisions = state.openDecisions()
    #expect(decisions.map(\.place) == [[a], [b]] && decisions.map(\.shown) == [.int(3), .int(3)])
    #expect(
      decisions[0].conflicts.map(\.path) == [[a, x], [a, y]] && decisions[1].conflicts.map(\.value) == [.int(1)])
    let taken = try #require(state.rendered().taking(decisions[0].conflicts))
    #expect(taken[path: [a, x]]?.value == .int(1) && taken[path: [a, y]]?.value == .int(2))
    #expect([a, x].places == "a.x")
  }
}
