import Replication
import Testing

@Suite("Document states")
struct DocumentStateTests {
  private let anna = ReplicaID(high: 1, low: 0)
  private let ben = ReplicaID(high: 2, low: 0)
  private let draft = PathSegment.key("draft")

  private func context(
    _ replica: ReplicaID, _ sequence: UInt64, sees other: (ReplicaID, UInt64)? = nil,
    ceilings: [ReplicaID: UInt64] = [:]
  ) -> WriteContext {
    let context = other.map { VersionVector([$0.0: ChainPosition(sequence: $0.1, tip: .zero)]) } ?? VersionVector()
    return WriteContext(
      dot: Dot(replica: replica, sequence: sequence), timestamp: HybridTimestamp(rawValue: 1), context: context,
      sight: Sight(ceilings: ceilings))
  }

  private func edit(_ value: Value) -> DocumentWrite {
    DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1, operations: [Operation(.set, [draft], value: value)])
  }

  @Test("a context entry on another branch of a forked chain sees no further than the fork")
  func contextOnAnotherBranchEndsAtTheFork() {
    let writes = [1, 2, 3].map { AcceptedWrite(context(anna, $0), edit(.int(Int64($0)))) }
    let seesAll = AcceptedWrite(context(ben, 1, sees: (anna, 3)), edit(.string("b")))
    #expect(DocumentState.merged(of: writes + [seesAll]).inbox().isEmpty)

    let seesToFork = AcceptedWrite(context(ben, 1, sees: (anna, 3), ceilings: [anna: 2]), edit(.string("b")))
    let state = DocumentState.merged(of: writes + [seesToFork])
    #expect(state.entries.map(\.value) == [.int(3), .string("b")])
    #expect(seesToFork.context.sees(Dot(replica: anna, sequence: 2)))
    #expect(!seesToFork.context.sees(Dot(replica: anna, sequence: 3)))
  }

  @Test("where a container and increments contend, the latest increment speaks for all of them")
  func incrementsAgainstContainer() {
    func write(_ replica: ReplicaID, stamp: UInt64, _ operation: Operation) -> AcceptedWrite {
      AcceptedWrite(
        WriteContext(
          dot: Dot(replica: replica, sequence: 1), timestamp: HybridTimestamp(rawValue: stamp),
          context: VersionVector()),
        DocumentWrite(collection: "c", id: .int(1), kind: .edit, generation: 1, operations: [operation]))
    }
    let carla = ReplicaID(high: 3, low: 0)
    for stamps in [(30, 10), (10, 30)] as [(UInt64, UInt64)] {
      let state = DocumentState.merged(of: [
        write(anna, stamp: stamps.0, Operation(.increment, [.key("n")], value: .int(2))),
        write(ben, stamp: stamps.1, Operation(.increment, [.key("n")], value: .int(3))),
        write(carla, stamp: 20, Operation(.set, [.key("n"), .key("x")], value: .int(1))),
      ])
      #expect(state.shown()?["n"] == .int(5), "stamps \(stamps)")
    }
  }

  @Test("who increments what somebody else has set to a text has not written what is shown")
  func lastWriteOfShown() {
    func write(_ dot: Dot, stamp: UInt64, _ operation: Operation) -> AcceptedWrite {
      AcceptedWrite(
        WriteContext(dot: dot, timestamp: HybridTimestamp(rawValue: stamp), context: VersionVector()),
        DocumentWrite(collection: "c", id: .int(1), kind: .edit, generation: 1, operations: [operation]))
    }
    let increment = Operation(.increment, [.key("n")], value: .int(1))
    let set = write(Dot(replica: anna, sequence: 1), stamp: 5, Operation(.set, [.key("n")], value: .string("text")))
    let state = DocumentState.merged(of: [
      set, write(Dot(replica: ben, sequence: 1), stamp: 6, increment),
      write(Dot(replica: ben, sequence: 2), stamp: 7, increment),
    ])
    #expect(state.shown()?["n"] == .string("text"))
    #expect(ShownWrites(state).last(at: [.key("n")])?.dot == Dot(replica: anna, sequence: 1))
  }

  @Test("who takes something out below what somebody else has set has not written what is shown")
  func lastWriteAboveRemoval() {
    func write(_ dot: Dot, stamp: UInt64, _ operations: [Operation]) -> AcceptedWrite {
      AcceptedWrite(
        WriteContext(dot: dot, timestamp: HybridTimestamp(rawValue: stamp), context: VersionVector()),
        DocumentWrite(collection: "c", id: .int(1), kind: .edit, generation: 1, operations: operations))
    }
    let state = DocumentState.merged(of: [
      write(Dot(replica: anna, sequence: 1), stamp: 5, [Operation(.set, [.key("n")], value: .int(5))]),
      write(
        Dot(replica: ben, sequence: 1), stamp: 9,
        [
          Operation(.remove, [.key("n"), .key("x")]), Operation(.set, [.key("n"), .key("y")], value: .int(2)),
        ]),
    ])
    #expect(state.shown()?["n"] == .int(5) && state.openDecisions().map(\.place) == [[.key("n")]])
    #expect(ShownWrites(state).last(at: [.key("n")])?.dot == Dot(replica: anna, sequence: 1))
  }

  @Test("a container that stood only by what was in it stays, when all of it is taken out")
  func emptiedContainerStays() throws {
    var random = MergeRandom(seed: 4)
    let inner = DocumentWrite(
      collection: "c", id: .int(1), kind: .create, generation: 1,
      operations: [Operation(.set, [.key("m"), .key("x")], value: .int(1))])
    var state = DocumentState()
    state.apply(AcceptedWrite(context(anna, 1), inner))
    let body = ValueMap(ascending: [.init(key: "m", value: .map(ValueMap()))])
    let save = try #require(
      try LocalWrite.write(
        "c", .int(1), state: state, body: body, erase: true, dot: Dot(replica: anna, sequence: 2), random: &random))
    state.apply(AcceptedWrite(context(anna, 2), save))
    #expect(state.shown() == body)
  }

  @Test("keeping a list as it is shown speaks of one element, so that what others insert stays visible")
  func keptList() throws {
    let create = DocumentWrite(
      collection: "c", id: .int(1), kind: .create, generation: 1,
      operations: [
        Operation(.set, [.key("l")], value: .array([])),
        Operation(.listInsert, [.key("l")], value: .string("first"), position: [1]),
        Operation(.listInsert, [.key("l")], value: .string("second"), position: [2]),
      ])
    let rival = DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1,
      operations: [Operation(.set, [.key("l")], value: .string("text"))])
    let early = WriteContext(dot: Dot(replica: ben, sequence: 1), timestamp: .zero, context: VersionVector())
    let state = DocumentState.merged(of: [AcceptedWrite(context(anna, 1), create), AcceptedWrite(early, rival)])
    let conflict = try #require(state.inbox().first { $0.value == .string("text") })
    let kept = LocalWrite.keep("c", .int(1), state: state, closing: conflict)
    #expect(kept.operations.map(\.path.count) == [2] && kept.operations.map(\.kind) == [.set])
    // Another's insert, which the one who keeps had not seen.
    let insert = DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1,
      operations: [Operation(.listInsert, [.key("l")], value: .string("third"), position: [3])])
    let writes = [
      AcceptedWrite(context(anna, 1), create), AcceptedWrite(early, rival),
      AcceptedWrite(context(anna, 2, sees: (ben, 1)), kept),
      AcceptedWrite(context(ReplicaID(high: 3, low: 0), 1, sees: (anna, 1)), insert),
    ]
    let shown = DocumentState.merged(of: writes)
    #expect(shown.shown()?["l"] == .array([.string("first"), .string("second"), .string("third")]))
    #expect(shown.inbox().isEmpty)
  }

  @Test("an element of a branch that is not accepted here is still named lawfully")
  func elementBeyondTheForkIsNamedLawfully() {
    let element = PathSegment.element(ListElement(position: [1], dot: Dot(replica: anna, sequence: 3)))
    let write = DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1,
      operations: [Operation(.listRemove, [.key("l"), element])])
    let restricted = context(ben, 1, sees: (anna, 3), ceilings: [anna: 2])
    #expect(restricted.malformation(of: [write]) == nil)
    #expect(!restricted.sees(Dot(replica: anna, sequence: 3)))
  }

  @Test("a save of a version of an earlier life is refused")
  func saveOfAnEarlierLifeIsRefused() throws {
    var random = MergeRandom(seed: 1)
    let dot = Dot(replica: anna, sequence: 9)
    var state = DocumentState()
    let create = try #require(
      try LocalWrite.write("c", .int(1), state: nil, body: ValueMap(), erase: false, dot: dot, random: &random))
    #expect(create.kind == .create && create.generation == 1)
    state.apply(AcceptedWrite(context(anna, 1), create))
    let read = state
    let delete = try #require(try LocalWrite.delete("c", .int(1), state: state))
    #expect(delete.kind == .delete && delete.generation == 2)
    state.apply(AcceptedWrite(context(anna, 2), delete))
    #expect(state.shown() == nil)
    #expect(try LocalWrite.delete("c", .int(1), state: state) == nil)
    #expect(throws: LocalWrite.Refusal.otherGeneration(read: 1, present: 2)) {
      try LocalWrite.write(
        "c", .int(1), state: state, read: read, body: ValueMap(), erase: false, dot: dot, random: &random)
    }
    let again = try LocalWrite.write(
      "c", .int(1), state: state, body: ValueMap(), erase: false, dot: dot, random: &random)
    #expect(again?.kind == .create && again?.generation == 3)
  }

  @Test("no life follows the last generation")
  func noLifeFollowsTheLastGeneration() {
    let last = DocumentState(generation: Malformation.generationLimit - 1, groups: [])
    #expect(last.isAlive)
    #expect(throws: LocalWrite.Refusal.generationsExhausted) { try LocalWrite.delete("c", .int(1), state: last) }
  }

  @Test("a remote edit between read and save is not reverted")
  func remoteEditInBetweenIsNotReverted() throws {
    var random = MergeRandom(seed: 2)
    func body(_ name: Value, _ port: Value) -> ValueMap {
      ValueMap(ascending: [.init(key: "name", value: name), .init(key: "port", value: port)])
    }
    var state = DocumentState()
    let create = try #require(
      try LocalWrite.write(
        "c", .int(1), state: nil, body: body(.string("Ana"), .string("")), erase: false,
        dot: Dot(replica: anna, sequence: 1), random: &random))
    state.apply(AcceptedWrite(context(anna, 1), create))
    let read = state
    let remote = DocumentWrite(
      collection: "c", id: .int(1), kind: .edit, generation: 1,
      operations: [Operation(.set, [.key("name")], value: .string("remote"))])
    state.apply(AcceptedWrite(context(ben, 1, sees: (anna, 1)), remote))
    let save = try #require(
      try LocalWrite.write(
        "c", .int(1), state: state, read: read, body: body(.string("Ana"), .string("Faro")), erase: true,
        dot: Dot(replica: anna, sequence: 2), random: &random))
    state.apply(AcceptedWrite(context(anna, 2, sees: (ben, 1)), save))
    #expect(state.shown() == body(.string("remote"), .string("Faro")))
    #expect(state.inbox().isEmpty)
  }

  @Test("a set removal among stored operations leaves no entry")
  func storedSetRemovalLeavesNoEntry() {
    let create = DocumentWrite(
      collection: "c", id: .int(1), kind: .create, generation: 1,
      operations: [
        Operation(.setRemove, [.key("s")], value: .int(2)), Operation(.setAdd, [.key("s")], value: .int(1)),
      ])
    let write = AcceptedWrite(context(anna, 1), create)
    let group = OperationGroup(
      dot: write.context.dot, timestamp: write.context.timestamp, generation: 1, operations: create.operations)
    #expect(DocumentState(generation: 1, groups: [group]) == DocumentState.merged(of: [write]))
  }

  @Test("increments that cancel leave a minus zero as it is")
  func cancellingIncrementsLeaveMinusZero() {
    func increment(_ amount: Int64) -> DocumentWrite {
      DocumentWrite(
        collection: "c", id: .int(1), kind: .edit, generation: 1,
        operations: [Operation(.increment, [draft], value: .int(amount))])
    }
    let state = DocumentState.merged(of: [
      AcceptedWrite(context(anna, 1), edit(.double(-0.0))), AcceptedWrite(context(anna, 2), increment(1)),
      AcceptedWrite(context(ben, 1, sees: (anna, 1)), increment(-1)),
    ])
    #expect(state.shown()?["draft"] == .double(-0.0))
    #expect(state.entries.count == 3)
  }

  @Test("a list without room between two neighbours is written anew")
  func listWithoutRoomIsWrittenAnew() throws {
    var random = MergeRandom(seed: 3)
    let first = ListElement(position: [1], dot: Dot(replica: anna, sequence: 1))
    // The second element's key begins with the whole of the first's, then zeros: only a longer position lies between.
    let close = first.key + [UInt8](repeating: 0, count: 512 - first.key.count)
    let create = DocumentWrite(
      collection: "c", id: .int(1), kind: .create, generation: 1,
      operations: [
        Operation(.set, [.key("l")], value: .array([])),
        Operation(.listInsert, [.key("l")], value: .string("first"), position: [1]),
        Operation(.listInsert, [.key("l")], value: .string("last"), position: close),
      ])
    var state = DocumentState()
    state.apply(AcceptedWrite(context(anna, 1), create))
    let body = ValueMap(ascending: [
      .init(key: "l", value: .array([.string("first"), .string("between"), .string("last")]))
    ])
    let save = try #require(
      try LocalWrite.write(
        "c", .int(1), state: state, body: body, erase: false, dot: Dot(replica: anna, sequence: 2), random: &random))
    #expect(save.operations.map(\.kind) == [.listRemove, .listRemove, .listInsert, .listInsert, .listInsert])
    #expect(context(anna, 2).malformation(of: [save]) == nil)
    state.apply(AcceptedWrite(context(anna, 2), save))
    #expect(state.shown() == body)
  }

  @Test func aStateStandsOnTheChangesOfItsEntriesAndOnThoseThatInsertedTheElementsTheyName() {
    let (writer, inserter) = (ReplicaID(high: 1, low: 1), ReplicaID(high: 2, low: 2))
    let element = ListElement(position: [1], dot: Dot(replica: inserter, sequence: 3))
    let places: [(UInt64, [PathSegment])] = [(4, [.key("list"), .element(element)]), (9, [.key("a")])]
    let groups = places.map { sequence, path in
      OperationGroup(
        dot: Dot(replica: writer, sequence: sequence), timestamp: .zero, generation: 1,
        operations: [Operation(.set, path, value: .int(1))])
    }
    #expect(DocumentState(generation: 1, groups: groups).changes == [writer: 9, inserter: 3])
    #expect(DocumentState().changes.isEmpty)
  }
}
