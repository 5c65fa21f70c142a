import Replication
import Simulation
import Testing

@Suite("Merge vectors")
struct MergeVectorTests {
  private static let files = ["merge-hand", "merge-random-1"]

  @Test("there are as many cases as there were")
  func noneIsLeftOut() throws {
    #expect(try MergeVectorTests.files.map { try MergeVectors.cases($0).count } == [152, 300])
    #expect(try ["diff-cases", "diff-hints"].map { try MergeVectors.load($0).count } == [153, 6])
  }

  @Test("every case shows its documents and its inbox", arguments: files)
  func everyCaseShowsItsDocumentsAndInbox(file: String) throws {
    for vector in try MergeVectors.cases(file) {
      #expect(MergeView(ReferenceStore.merged(vector.counted, vector.groups)) == vector.expected, "\(vector.name)")
    }
  }

  @Test("all changes of the vectors are well formed", arguments: files)
  func allChangesAreWellFormed(file: String) throws {
    for vector in try MergeVectors.cases(file) {
      for change in vector.changes {
        #expect(change.context.malformation(of: change.writes) == nil, "\(vector.name) \(change.dot)")
      }
    }
  }

  @Test("the order of arrival makes no difference, nor what was accepted in between", arguments: files)
  func orderOfArrivalMakesNoDifference(file: String) throws {
    var random = MergeRandom(seed: 1)
    for vector in try MergeVectors.cases(file) {
      let expected = ReferenceStore.merged(vector.counted, vector.groups)
      let orders =
        [vector.changes] + (0..<3).map { _ in random.order(vector.changes, causal: true) }
        + [random.order(vector.changes, causal: false)]
      for order in orders {
        var store = ReferenceStore(order, groups: vector.groups)
        for (replica, sequence) in vector.accepted { store.cut(replica, to: sequence) }
        #expect(MergeView(store.documents) == vector.expected, "\(vector.name)")
        #expect(store.documents == expected, "\(vector.name)")
      }
    }
  }
}

@Suite("Local write vectors")
struct LocalWriteVectorTests {
  private static func hints() throws -> WriteHints {
    WriteHints(
      try MergeVectors.load("diff-hints").map { hint in
        let path = try hint["path"].items.map { step -> WriteHints.Step in
          try step.text == "*" ? .anyElement : .key(try step.text)
        }
        let kind: WriteHints.Kind? =
          switch try hint["kind"].text {
          case "list": .list(key: try hint.optional("key")?.text)
          case "set": .set
          case "counter": .counter
          default: nil
          }
        return (path, try #require(kind))
      })
  }

  @Test("every difference gives the operations of its case")
  func everyDifferenceGivesItsOperations() throws {
    let hints = try Self.hints()
    let replica = try MergeVectors.replica("A")
    var random = MergeRandom(seed: 2)
    for vector in try MergeVectors.load("diff-cases") {
      let name = try vector["name"].text.string
      let created = DocumentWrite(
        collection: "c", id: .string("d"), kind: .create, generation: 1,
        operations: try vector["base"].items.map { try MergeVectors.operation($0, MergeVectors.segment) })
      let first = WriteContext(
        dot: Dot(replica: replica, sequence: 1), timestamp: HybridTimestamp(rawValue: 1), context: VersionVector())
      let state = DocumentState.merged(of: [AcceptedWrite(first, created)])
      #expect(state.shown() == (try vector["shown"].map), "\(name)")

      let shown = state.rendered()
      let operations = LocalWrite.operations(
        base: shown, now: shown, new: try vector["new"].map, hints: hints, erase: try vector["erase"] == .bool(true),
        dot: Dot(replica: replica, sequence: 2), random: &random)
      #expect(operations == (try expected(vector, like: operations)), "\(name)")
    }
  }

  /// The case's operations, with the positions that were drawn here.
  private func expected(_ vector: Value, like operations: [Operation]) throws -> [Operation] {
    let positions = operations.filter { $0.kind == .listInsert }.map(\.position)
    let own = Dot(replica: try MergeVectors.replica("A"), sequence: 2)
    let listed = try vector["operations"].items.map { value in
      try MergeVectors.operation(value) { segment in
        guard case .map(let map) = segment, case .string(let name)? = map["e"] else {
          return try MergeVectors.segment(segment)
        }
        let number = try #require(Int(name.string.dropFirst()))
        return .element(ListElement(position: try #require(positions[at: number]), dot: own))
      }
    }
    var inserts = 0
    return listed.map { operation in
      guard operation.kind == .listInsert else { return operation }
      inserts += 1
      return Operation(
        .listInsert, operation.path, value: operation.value, position: positions[at: inserts - 1] ?? [])
    }
  }
}

extension Array {
  fileprivate subscript(at index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
