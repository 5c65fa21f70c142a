import LocalAPITestSupport
import Replication
import Seamesh
import Testing
import Wire

@testable import SeameshCommand

@Suite("The verbs of conflicts", .enabled(if: isCommandBuilt), .serialized)
struct ConflictVerbTests {
  private func conflict(_ id: String) -> ConflictStatus {
    var conflict = ConflictStatus()
    (conflict.id, conflict.collection, conflict.document) = (id, "reports", .string("r1"))
    (conflict.place, conflict.shown) = ("crew", .int(3))
    var value = ConflictStatus.Candidate()
    (value.path, value.kind, value.value) = ("crew", "set", .int(2))
    (value.writer.user, value.writer.label) = ("ann", "tablet\u{1b}")
    var author = ConflictStatus.Writer()
    (author.user, author.writtenMilliseconds) = ("bo", 1_000)
    conflict.shownBy = author
    var removal = ConflictStatus.Candidate()
    (removal.path, removal.kind, removal.writer.replica) = ("crew", "remove", "00ff00ff00ff00ff")
    conflict.values = [value, removal]
    return conflict
  }

  private func page(_ ids: [String], next: String? = nil) -> ConflictPage {
    var page = ConflictPage()
    (page.conflicts, page.next, page.examined) = (ids.map(conflict), next, 20_000)
    return page
  }

  private func json(_ server: TestedServer, _ arguments: [String]) throws -> ValueMap {
    try ExtendedJSON.parseMap(Array(server.run(arguments + ["--json"]).output.utf8))
  }

  @Test("each conflict is shown with its values, who wrote them, and how it is decided, over all pages")
  func list() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.show(conflicts: [page(["a.1"], next: "1"), page([], next: "2"), page(["b.1"])])
    let result = try server.run(["conflicts", "agency=A B"])
    #expect(result.status == 0)
    for words in [
      "agency=A B  reports  \"r1\"  crew\n", "shown  crew  3        bo             1970-01-01T00:00:01",
      "1      crew  2        ann (tablet?)",
      "2      crew  remove   00ff00ff00ff", "seamesh resolve 'agency=A B' a.1\n", "seamesh resolve 'agency=A B' b.1\n",
    ] { #expect(result.output.contains(words), "\(words): \(result.output)") }
    #expect(!result.output.contains("there may be more"))
  }

  @Test("of a deleted document the list and the decision say that what is taken comes back alone")
  func deleted() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    var gone = conflict("gone.1")
    (gone.isDeleted, gone.shown, gone.shownBy) = (true, nil, nil)
    var page = ConflictPage()
    page.conflicts = [gone]
    node.show(conflicts: [page])
    let listed = try server.run(["conflicts", "p"]).output
    #expect(
      listed.contains("nothing  not kept") && listed.contains("with that alone: its other fields are gone\n"),
      "\(listed)")
    let decided = try server.run(["resolve", "p", "gone.1", "--take=1"]).output
    #expect(decided.contains("there again, with what was decided and nothing else"))
    #expect(try server.run(["help", "resolve"]).output.contains("went with the deletion"))
  }

  @Test("a list that its limit ends says so, and one of nothing says how much was looked at")
  func incomplete() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    let lacking = try server.run(["conflicts", "p"])
    #expect(lacking.output.contains("nothing waits for a decision; 0 documents"))
    #expect(lacking.error.contains("this node holds nothing of p"))
    node.show(conflicts: [page(["a.1", "a.2"], next: "1"), page(["b.1"])])
    #expect(try server.run(["conflicts", "p", "--limit=2"]).output.contains("there may be more"))
    let answer = try json(server, ["conflicts", "p", "--limit=2"])
    #expect(answer["incomplete"] == .bool(true) && answer.list("conflicts").map { $0.text("partition") } == ["p", "p"])
    #expect(try json(server, ["conflicts", "p"])["incomplete"] == .bool(false))
    #expect(try server.run(["conflicts", "p", "--limit=0"]).status == 2)
  }

  @Test("without a partition all that are here are asked, and those that may not be read are passed over")
  func everywhere() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    for name: Text in ["p", "q"] { try node.subscribe(name) }
    node.show(conflicts: [page(["a.1"])])
    #expect(try json(server, ["conflicts"]).list("conflicts").map { $0.text("partition") } == ["p", "q"])
    node.fail(NodeError(.notPermitted, "this device may not read p"))
    #expect(try server.run(["conflicts"]).status == 0)
    #expect(try server.run(["conflicts", "p"]).status == 4)
  }

  @Test("a decision is sent as it was asked for, and a mistake in it is one of usage")
  func decisions() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    for (option, choice) in [
      (["--keep"], .keep), (["--take=2", "--take=1"], .take([2, 1])),
      (["--value={\"a\":1}"], .value(.map(ValueMap([ValueMap.Entry(key: "a", value: .int(1))]) ?? ValueMap()))),
      (["--value=null"], .value(.null)),
    ] as [([String], ConflictChoice)] {
      let result = try server.run(["resolve", "p", "63.0661.v1.1"] + option)
      #expect(result.output == "decided (local-durable)\n", "\(result)")
      #expect(node.resolutions.last?.conflict == "63.0661.v1.1" && node.resolutions.last?.choice == choice)
    }
    for options in [[], ["--keep", "--take=1"], ["--take=x"], ["--value={"]] {
      #expect(try server.run(["resolve", "p", "63.0661.v1.1"] + options).status == 2, "\(options)")
    }
    node.fail(NodeError(.preconditionFailed, "the document has changed since this conflict was read"))
    let late = try server.run(["resolve", "p", "63.0661.v1.1", "--keep"])
    #expect(late.status == 1 && late.error.contains("has changed since"))
  }
}
