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

  @Test("who is made a member again while connected gets what the others have, and they what it wrote, at once")
  func memberAgain() throws {
    let bench = try EngineBench(3)
    let (room, node) = (try PartitionName("room=1"), bench.nodes[1])
    for node in bench.nodes { try node.subscribe("room=*") }
    try node.write(room, Put("before"))
    bench.cut(bench.meet(1, 0))
    let first = try #require(node.state.mesh.authority.member(of: node.key.publicKey))
    let tip = try #require(bench.nodes[0].state.mesh.authority.lastStatement(of: node.key.publicKey))
    let listing = Statement.Listing(tips: [
      Statement.ScopeTips(
        scope: "", tips: [Statement.Tip(issuer: node.key.publicKey, sequence: tip.sequence, id: tip.id)])
    ])
    let end = try bench.statement(
      .end(Statement.End(reason: .retire, target: .membership(first.id), listing: listing)))
    bench.nodes[0].engine.turn([.call { $0.add([end]) }])
    try bench.nodes[0].write(room, Put("meanwhile"))
    bench.meet(1, 0)
    try #require(try node.shown(room, "meanwhile") == nil)
    let again = try bench.membership(of: node.key.publicKey, label: "again")
    bench.nodes[0].engine.turn([.call { $0.add([again]) }])
    bench.run()
    for _ in 0..<10 { bench.advance(500) }
    #expect(try node.shown(room, "meanwhile") != nil)
    try node.write(room, Put("after"))
    for _ in 0..<4 { bench.advance(500) }
    #expect(try bench.nodes[0].shown(room, "after") != nil)
  }
}
