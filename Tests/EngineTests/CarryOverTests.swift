import Identity
import Replication
import Synchronization
import Testing

@testable import Engine
@testable import Storage

/// When what a node wrote is carried from the store's log to its place.
@Suite struct CarryOverTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  /// Waits for syncs of nobody but the writer's: what was done between his request and the answer.
  private final class Stopwatch: Sendable {
    private let counts = Mutex<[UInt64]>([])
    var longest: UInt64 { counts.withLock { $0.max() ?? 0 } }

    func write(_ edit: Put, to room: PartitionName, on node: BenchNode) {
      let (syncs, before) = (node.store.store.syncs, node.store.store.syncs.count)
      let job = LocalWriteJob(partition: room, edits: [edit]) { [self] _ in
        counts.withLock { $0.append(syncs.count - before) }
      }
      node.engine.turn([.write(job)])
    }
  }

  @Test("a write is answered after its own sync, and none waits for the log to be carried over")
  func answeredBefore() throws {
    let node = try EngineBench().nodes[0]
    let store = node.store.store
    let watch = Stopwatch()
    var (carried, most) = (0, 0)
    for number in 0..<260 {
      let waiting = store.waitingFrames
      watch.write(Put(Text("\(number)"), byteCount: 15_000), to: room, on: node)
      if store.waitingFrames < waiting { carried += 1 }
      most = max(most, store.waitingFrames)
    }
    #expect(carried >= 1, "the log never came to its limit: \(most) frames")
    // The first write behind a log that was carried over also syncs the new log's head.
    #expect(watch.longest <= 2)
  }

  @Test(
    "a log that is left when writing ends is carried over in a quiet moment, and then nothing wakes the engine for it")
  func quiet() throws {
    let bench = try EngineBench()
    let node = bench.nodes[0]
    let store = node.store.store
    for number in 0..<120 { try node.write(room, Put(Text("\(number)"), byteCount: 15_000)) }
    let waiting = store.waitingFrames
    // A quarter of what the log may hold.
    try #require(waiting > 1_024)
    node.engine.turn([])
    #expect(store.waitingFrames == waiting, "somebody wrote a moment ago")
    let wake = node.engine.nextWake
    #expect(wake.millisecondsSince(bench.clock.now) <= 1_000)
    bench.clock.advance(1_000)
    node.engine.turn([])
    #expect(store.waitingFrames == 0 && store.carryDelay == nil)
  }
}
