import Identity
import Replication
import Testing

@testable import Engine
@testable import Replication
@testable import Storage

/// A device that has signed as many statements as it may lowers what can be asked of every chain. Documents are not built
/// anew for that.
@Suite struct FullDeviceTests {
  @Test("beside a full device a remote change is merged as ever; after a start one rebuild per partition, and no more")
  func rebuilds() throws {
    let bench = try EngineBench(3)
    let room = try PartitionName("room=1")
    for node in bench.nodes { try node.subscribe("*") }
    let author = HostileAuthor(bench, slot: 2)
    let said = try author.declare(AdmittedStatements.limit + 1).map(\.encoded)
    for slot in 0..<2 {
      let session = bench.meet(2, slot)
      for batch in stride(from: 0, to: said.count, by: 100) {
        author.say([.statements(Array(said.dropFirst(batch).prefix(100)))], to: slot, on: session)
      }
      bench.cut(session)
    }
    let replica = try #require(author.replicas.first)
    #expect(bench.nodes[0].state.mesh.authority.floor(of: replica, in: room) == 0)
    func rebuilds() -> UInt64 { bench.nodes[0].store.store.end.rebuilds }

    bench.meet(0, 1)
    var before = rebuilds()
    for word in 0..<10 {
      for slot in [1, 0] { try bench.nodes[slot].write(room, Put("d", Int64(word * 2 + slot))); bench.run() }
    }
    #expect(rebuilds() == before)

    try bench.restart(0)
    bench.meet(0, 1)
    before = rebuilds()
    for word in 0..<10 { try bench.nodes[1].write(room, Put("d", Int64(100 + word))); bench.run() }
    #expect(rebuilds() == before + 1)
    let shown = try (0..<2).map { try bench.nodes[$0].shown(room, "d") }
    #expect(shown[0] == shown[1] && shown[0] == map(["n": .int(109)]))
  }
}
