import Testing
import Wire

@testable import Replication
@testable import Simulation

@Suite("Mesh: contexts on a stream") struct MeshContextTests {
  /// Node 0 has seen three others; node 1's stream from it is open, and has brought two runs that tell so.
  private func pair(_ formats: KnownFormats = KnownFormats()) throws -> (MeshBench, SessionID) {
    let bench = try MeshBench([0, 1, 2, 3, 4], formats: [1: formats])
    for slot in 2..<5 {
      _ = bench.connected(0, slot)
      try bench.nodes[slot].write(Int64(slot))
      bench.pass(100)
    }
    let id = bench.connected(0, 1)
    for value in 0..<2 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.run()
    try #require(bench.nodes[1].holds(bench.nodes[0]) == 2)
    return (bench, id)
  }

  private func entries(_ bench: MeshBench, since start: Int) -> [RunBatch.Entry] {
    bench.messages(from: 0, to: 1, since: start).flatMap { message -> [RunBatch.Entry] in
      if case .runs(let batch) = message { batch.entries } else { [] }
    }
  }

  private func isFull(_ entry: RunBatch.Entry?) -> Bool { if case .full? = entry?.context { true } else { false } }

  @Test("what a run's context shares with that of the run before it is not said again, and is understood")
  func increments() throws {
    let (bench, id) = try pair()
    let start = bench.transcript.count
    for value in 2..<5 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.run()
    let sent = entries(bench, since: start)
    #expect(sent.count == 3 && sent.allSatisfy { $0.context == .increments([]) })
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 5 && bench.nodes[1].mesh.sessions[id] != nil)
  }

  @Test("the first context of a stream that is asked for anew stands on what it was asked for with")
  func sentAnew() throws {
    let (bench, id) = try pair()
    let held = try #require(bench.nodes[1].state?.clipped)
    let run = try bench.nodes[0].write(2)
    bench.loseMessages()
    let start = bench.transcript.count
    bench.nodes[0].receive(.pull(stream: 70, PartitionVector(name: bench.name, vector: held)), on: id)
    // On the context before it nothing would differ: who wrote it is no part of that.
    let context = ContextForm.shorter(run.context, base: held)
    #expect(entries(bench, since: start).map(\.context) == [context])
    #expect(!isFull(entries(bench, since: start).first) && context.entryCount == 1)
  }

  @Test("where one end does not know of such bases a stream that is asked for anew begins with a whole context")
  func sentWholeAnew() throws {
    var formats = KnownFormats()
    formats.features &= ~KnownFormats.Feature.differences
    let (bench, id) = try pair(formats)
    let held = try #require(bench.nodes[1].state?.clipped)
    try bench.nodes[0].write(2)
    bench.loseMessages()
    let start = bench.transcript.count
    bench.nodes[0].receive(.pull(stream: 70, PartitionVector(name: bench.name, vector: held)), on: id)
    let sent = entries(bench, since: start)
    #expect(sent.count == 1 && isFull(sent.first))
  }

  @Test("who asked for a stream anew does not read its first context on top of what came before")
  func readAnew() throws {
    for isWhole in [true, false] {
      let (bench, id) = try pair()
      let run = try bench.nodes[0].write(2)
      bench.loseMessages()
      bench.now = bench.now.advanced(byMilliseconds: 5_100)
      let held = try #require(bench.nodes[0].state?.clipped)
      bench.nodes[1].receive(.have(PartitionVector(name: bench.name, vector: held)), on: id)
      let asked = bench.messages(from: 1, to: 0).compactMap { message -> UInt64? in
        if case .pull(let number, _) = message { number } else { nil }
      }
      bench.loseMessages()
      let context = isWhole ? ContextForm.full(run.context) : .increments([])
      let entry = RunBatch.Entry(context: context, encoded: run.encoded)
      let batch = RunBatch(name: bench.name, stream: try #require(asked.last), entries: [entry])
      bench.nodes[1].receive(.runs(batch), on: id)
      #expect((bench.nodes[1].mesh.sessions[id] != nil) == isWhole)
      #expect((bench.nodes[1].holds(bench.nodes[0]) == 3) == isWhole)
    }
  }
}
