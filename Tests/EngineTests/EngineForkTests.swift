import Identity
import Replication
import Testing

@testable import Engine

/// Forks as documents show them.
@Suite struct EngineForkTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func state(_ node: BenchNode, _ id: Text) throws -> [UInt8]? {
    try node.store.document(DocumentKey(collection: Put.collection, id: .string(id)), in: node.id(of: room))?.state
  }

  /// Node 1 has seen the branch of node 0, node 2 that of its copy, and each has written on top of it; node 3 knew both
  /// branches before.
  private func seen() throws -> EngineBench {
    let bench = try EngineBench(4)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("doc", 0))
    for slot in 1..<4 { bench.cut(bench.meet(0, slot)) }
    let copy = try bench.clone(0)
    try bench.nodes[0].write(room, Put("doc", 10))
    try bench.nodes[copy].write(room, Put("doc", 20))
    bench.cut(bench.meet(0, 1))
    bench.cut(bench.meet(copy, 2))
    for slot in [0, copy] { bench.cut(bench.meet(slot, 3)) }
    try bench.nodes[1].write(room, Put("doc", 11))
    try bench.nodes[2].write(room, Put("doc", 21))
    return bench
  }

  @Test("what was written in sight of either branch comes to one state, whether the fork was known before or after it")
  func sameStates() throws {
    let bench = try seen()
    for slot in [1, 2, 1, 2] { bench.cut(bench.meet(slot, 3)) }
    #expect(Set((1..<4).map { bench.nodes[$0].accepted(room) }).count == 1)
    #expect(try Set((1..<4).map { try state(bench.nodes[$0], "doc") }).count == 1)
    // Rebuilt from the log it is the same again: what a start finds is what was there.
    for slot in 1..<4 { try bench.restart(slot) }
    for _ in 0..<3 { for slot in [0, 1, 2, 4] { bench.cut(bench.meet(slot, 3)) } }
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
    #expect(try Set(bench.nodes.map { try state($0, "doc") }).count == 1)
  }

  @Test("only its own device issues a lost change again, under one name, however many nodes learn of it")
  func ownOnly() throws {
    let bench = try seen()
    let commits = [1, 2, 3].map { bench.nodes[$0].state.own.commits }
    for _ in 0..<3 { for slot in [0, 1, 2, 4] { bench.cut(bench.meet(slot, 3)) } }
    for _ in 0..<130 { bench.advance(500) }
    #expect([1, 2, 3].map { bench.nodes[$0].state.own.commits } == commits)
    #expect(try bench.nodes.map { try $0.count("reissues") } == [1, 1, 1, 1, 1])
  }

  @Test("a chain that forks again and again keeps every write, also those that were issued again before")
  func again() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("start"))
    bench.cut(bench.meet(0, 1))
    let copy = try bench.clone(0)
    for slot in [0, copy] { try bench.nodes[slot].write(room, Put(Text("first\(slot)"))) }
    bench.cut(bench.meet(copy, 1))
    // The one that has not met anybody yet is copied with what it wrote.
    let third = try bench.clone(0)
    for slot in [0, third] { try bench.nodes[slot].write(room, Put(Text("second\(slot)"))) }
    for _ in 0..<4 { for slot in [0, copy, third] { bench.cut(bench.meet(slot, 1)) } }
    for slot in [0, copy, third] { try bench.nodes[slot].write(room, Put(Text("last\(slot)"))) }
    for _ in 0..<3 { for slot in [0, copy, third] { bench.cut(bench.meet(slot, 1)) } }
    for node in bench.nodes { #expect(try node.count("documents WHERE alive") == 8) }
    #expect(Set(bench.nodes.map { $0.accepted(room) }).count == 1)
    let states = try bench.nodes.map { node in
      try ["start", "first0", "first2", "second0", "second3"].map { try state(node, $0) }
    }
    #expect(Set(states).count == 1)
  }
}
