import Identity
import Replication
import Testing

@testable import Engine

/// What two nodes keep from one another, and say so.
@Suite struct WallTests {
  @Test("who keeps something from a peer says so once, and again when statements have changed; nobody else does")
  func told() throws {
    let bench = try EngineBench(3)
    let key = bench.nodes[0].key.publicKey
    let said = [
      try bench.grant(.none),
      try bench.statement(.grant(Statement.Grant(subject: .device(key), level: .write, pattern: "room=*"))),
    ]
    for node in bench.nodes {
      node.engine.turn([.call { $0.add(said) }])
      for name: Text in ["room=1", "room=2", "boat=1"] { try node.subscribe(name) }
    }
    func lines(_ slot: Int) -> [String] {
      bench.nodes[slot].journal.lines.filter { $0.message == "keeps from a peer what it may not have" }.map { line in
        "\(line.facts["partitions"] ?? "") \(line.facts["first"] ?? "")"
      }
    }
    for _ in 0..<3 { bench.cut(bench.meet(1, 0)) }
    #expect(lines(0) == ["2 room=1"] && lines(1).isEmpty)
    bench.cut(bench.meet(2, 0))
    #expect(lines(0) == ["2 room=1", "2 room=1"], "another device is told of apart")
    let widened = try bench.statement(
      .grant(Statement.Grant(subject: .device(bench.nodes[1].key.publicKey), level: .carry, pattern: "room=1")))
    bench.nodes[0].engine.turn([.call { $0.add([widened]) }])
    for _ in 0..<2 { bench.cut(bench.meet(1, 0)) }
    #expect(lines(0).last == "1 room=2" && lines(0).count == 3)
  }
}
