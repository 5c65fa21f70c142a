import CSQLite
import Identity
import Replication
import Testing

@testable import Seamesh
@testable import Storage

@Suite(.serialized) struct LogReaderTests {
  private static let (chains, runs) = (16, 64)

  /// Chains of a MiB each, one after the other, all of one device.
  private func filled(_ partition: PartitionName) throws -> TestFleet {
    let fleet = try TestFleet(1)
    for chain in 0..<Self.chains {
      try fleet.nodes[0].onEngine { $0.demandRenewal(.peer) }
      for index in 0..<Self.runs {
        let bytes = [UInt8](repeating: UInt8(chain), count: 16_000)
        try fleet.nodes[0].put(partition, "c", Text("\(chain)-\(index)"), body(["n": .bytes(bytes)]))
      }
    }
    return fleet
  }

  @Test("a load reads of many lagging chains little more than it answers, and loads together answer all, in order")
  func manyChains() throws {
    let partition = try PartitionName("room=1")
    let fleet = try filled(partition)
    let id = partition.id(fleet: fleet.nodes[0].endpoints.fleet, hash: SHA256.hash)
    let (loads, pages) = try #require(
      try fleet.nodes[0].onEngine { engine -> ([[LoggedRun]], Int)? in
        engine.attempt(nil) {
          let reader = LogReader(store: engine.store, fleet: engine.files.fleet, mesh: engine.mesh)
          var (have, loads) = (VersionVector(), [[LoggedRun]]())
          let before = pageVisits(engine.store)
          var pages = 0
          var hasMore = true
          while hasMore {
            let loaded = try reader.runs(id, lackedBy: have, byteLimit: 1_024 * 1_024)
            if loads.isEmpty { pages = pageVisits(engine.store) - before }
            loads.append(loaded.0)
            hasMore = loaded.hasMore
            for run in loaded.0 { have[run.replica] = ChainPosition(sequence: run.last, tip: .zero) }
          }
          return (loads, pages)
        }
      })
    #expect(loads.joined().count == Self.chains * Self.runs)
    for load in loads.dropLast() { #expect(load.reduce(0) { $0 + $1.byteCount } >= 1_024 * 1_024) }
    // Each chain was written after the one before it.
    var last: [ReplicaID] = []
    for run in loads.joined() where last.last != run.replica { last.append(run.replica) }
    #expect(last.count == Self.chains)
    // All that the chains have is more than a thousand pages.
    #expect(pages < 700)
  }

  private func pageVisits(_ store: Store) -> Int {
    [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS].reduce(0) { sum, counter in
      var (current, highest): (Int32, Int32) = (0, 0)
      sqlite3_db_status(store.database.handle, counter, &current, &highest, 0)
      return sum + Int(current)
    }
  }
}
