import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Seamesh

/// What becomes of a write, on whole nodes.
@Suite(.serialized) struct DocumentWriteTests {
  let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  @discardableResult private func write(
    _ node: Node, _ id: Text, _ action: DocumentRequest.Action, if condition: DocumentRequest.Condition? = nil
  ) throws(NodeError) -> WriteReceipt {
    try node.write(
      partition, [DocumentRequest(collection: "reports", id: .string(id), action: action, condition: condition)])
  }

  private func refusal(
    _ node: Node, _ id: Text, _ action: DocumentRequest.Action, if condition: DocumentRequest.Condition? = nil
  ) -> NodeError? {
    do throws(NodeError) {
      _ = try write(node, id, action, if: condition)
      return nil
    } catch {
      return error
    }
  }

  private func shown(_ node: Node, _ id: Text) throws -> ValueMap? {
    try node.read(partition, "reports", id: .string(id))?.body
  }

  private func changes(_ node: Node) throws -> Int64? {
    try node.partitions(withDigests: false).first { $0.name == partition.text.string }?.changes
  }

  /// What the last change in the log says.
  private func lastWrites(_ node: Node) throws -> [DocumentWrite] {
    let fleet = node.endpoints.fleet
    let id = partition.id(fleet: fleet, hash: SHA256.hash)
    let runs = try node.engine.ask { engine -> [LoggedRun] in
      engine.attempt([]) {
        try LogReader(engine.state).runs(id, lackedBy: VersionVector(), byteLimit: .max).runs
      }
    }
    let last = try #require(runs.last)
    let run = try RunCodec.decode(last.encoded, fleet: fleet, partition: id, hash: SHA256.hash)
    let change = try #require(run.changes.last)
    return try PayloadDecoder.decodeWrites(
      change.payload[...], dot: Dot(replica: last.replica, sequence: change.header.sequence))
  }

  @Test("a patch of a document that never was, or was deleted, is refused and writes nothing; an upsert makes it")
  func patchOfNothing() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try write(node, "gone", .put(body: body(["old": .int(1)])))
    try write(node, "gone", .delete)
    let before = try changes(node)
    let fields = body(["n": .int(1)])
    for id in ["never", "gone"] as [Text] {
      for action in [.mergePatch(fields), .update(body(["$set": .map(fields)]))] as [DocumentRequest.Action] {
        #expect(refusal(node, id, action)?.code == .notFound)
      }
      #expect(try shown(node, id) == nil)
    }
    #expect(try changes(node) == before)
    #expect(try write(node, "never", .mergePatch(fields, upsert: true)).created == [true])
    #expect(try write(node, "gone", .update(body(["$set": .map(fields)]), upsert: true)).created == [true])
    #expect(try shown(node, "never") == fields && shown(node, "gone") == fields)
    #expect(try write(node, "gone", .mergePatch(body(["m": .int(2)]), upsert: true)).created == [false])
    #expect(try shown(node, "gone") == body(["m": .int(2), "n": .int(1)]))
  }

  @Test("an operator that is not built is told by name, whether the document is there or not")
  func unbuiltOperators() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    try write(node, "here", .put(body: body(["n": .int(1)])))
    for id in ["here", "never"] as [Text] {
      let refused = refusal(node, id, .update(body(["$inc": .map(body(["n": .int(1)]))])))
      #expect(refused?.code == .unprocessable && refused?.message.contains("$inc") == true)
    }
  }

  @Test("a put takes away what it leaves out, at every depth; keepAbsent keeps it")
  func replacing() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let crew = body(["mate": .string("Grace"), "cook": .string("Lin")])
    try write(node, "r", .put(body: body(["a": .int(1), "b": .int(2), "crew": .map(crew)])))
    try write(
      node, "r", .put(body: body(["a": .int(3), "crew": .map(body(["mate": .string("Ada")]))]), keepAbsent: true))
    let kept = body(["mate": .string("Ada"), "cook": .string("Lin")])
    #expect(try shown(node, "r") == body(["a": .int(3), "b": .int(2), "crew": .map(kept)]))
    let new = body(["a": .int(3), "crew": .map(body(["mate": .string("Ada")]))])
    try write(node, "r", .put(body: new))
    #expect(try shown(node, "r") == new)
    try write(node, "r", .put(body: ValueMap()))
    #expect(try shown(node, "r") == ValueMap())
  }

  @Test("a put records an operation for each field that differs and for nothing else, and no change where none does")
  func differences() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let first = body(["a": .int(1), "b": .string("x"), "crew": .map(body(["mate": .int(1), "cook": .int(2)]))])
    try write(node, "r", .put(body: first))
    try write(
      node, "r",
      .put(body: body(["a": .int(1), "b": .string("x"), "crew": .map(body(["mate": .int(7), "cook": .int(2)]))])))
    #expect(try lastWrites(node).map(\.operations.count) == [1])
    try write(node, "r", .put(body: body(["a": .int(1), "crew": .map(body(["mate": .int(7), "cook": .int(2)]))])))
    #expect(try lastWrites(node).map(\.operations.count) == [1])
    let before = try changes(node)
    let same = try #require(try shown(node, "r"))
    #expect(try write(node, "r", .put(body: same)).dot == nil)
    #expect(try changes(node) == before)
  }

  @Test("what another node meanwhile did to other fields stands beside a put of the whole document")
  func concurrentPuts() throws {
    let fleet = try TestFleet(2)
    try fleet.nodes[1].subscribe(partition.text)
    try write(fleet.nodes[0], "r", .put(body: body(["a": .int(1), "b": .int(1), "c": .int(1)])))
    try eventually { try shown(fleet.nodes[1], "r") != nil }
    // Apart from here on: node 0 knows nobody's address.
    let address = try fleet.peerAddress(of: fleet.nodes[0])
    fleet.nodes[0].stop()
    let etag = try fleet.nodes[1].read(partition, "reports", id: .string("r"))?.etag ?? ""
    let other = body(["a": .int(1), "b": .int(2), "c": .int(1), "d": .int(2)])
    try write(fleet.nodes[1], "r", .put(body: other), if: .isOneOf([etag]))
    try fleet.restart(1, peers: [address])
    try fleet.restart(0)
    try write(fleet.nodes[0], "r", .put(body: body(["a": .int(3), "b": .int(1)])))
    try fleet.restart(1)
    let wanted = body(["a": .int(3), "b": .int(2), "d": .int(2)])
    for node in fleet.nodes { try eventually { try shown(node, "r") == wanted } }
  }

  @Test("a condition is held against the document as it stands, and what is not met writes nothing")
  func conditions() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let (old, new) = (body(["n": .int(1)]), DocumentRequest.Action.put(body: body(["n": .int(2)])))
    let first = try #require(try write(node, "here", .put(body: old)).etags.first ?? nil)
    try write(node, "gone", .put(body: old))
    try write(node, "gone", .delete)
    let before = try changes(node)
    let unmet: [(Text, DocumentRequest.Condition, String)] = [
      ("never", .exists, "there is no such document"), ("never", .isOneOf([first]), "there is no such document"),
      ("gone", .exists, "deleted"), ("gone", .isOneOf([first]), "deleted"), ("here", .isOneOf(["f00"]), first),
      ("here", .isOneOf([]), first), ("here", .isAbsent, "there already"), ("here", .isNoneOf(["f00", first]), first),
    ]
    for (id, condition, word) in unmet {
      for action in [new, .mergePatch(old, upsert: true), .delete] as [DocumentRequest.Action] {
        let refused = refusal(node, id, action, if: condition)
        #expect(refused?.code == .preconditionFailed, "\(id) \(condition) \(action)")
        #expect(refused?.message.contains(word) == true, "\(refused?.message ?? "")")
      }
    }
    #expect(try changes(node) == before)
    #expect(try shown(node, "here") == old && shown(node, "gone") == nil)
    let second = try #require(try write(node, "here", new, if: .isOneOf(["f00", first])).etags.first ?? nil)
    #expect(second != first)
    #expect(refusal(node, "here", new, if: .isOneOf([first]))?.code == .preconditionFailed)
    try write(node, "here", .put(body: old), if: .exists)
    try write(node, "here", new, if: .isNoneOf([first]))
    try write(node, "never", new, if: .isAbsent)
    try write(node, "gone", new, if: .isAbsent)
    #expect(try shown(node, "never") == body(["n": .int(2)]) && shown(node, "gone") == body(["n": .int(2)]))
  }
}
