import Replication
import Synchronization
import TestSupport
import Testing

@testable import Transport

/// Frames of a few bytes, which cost by their number.
@Suite(.serialized) struct SmallFramesTests {
  @Test("small frames are taken up to a number of them; when the queue has drained more are taken, and all arrive")
  func queueBound() throws {
    let (a, b) = (try Node(seed: 1) { $0.sendQueueFrameLimit = 1_000 }, try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    b.transport.pauseReading(pair.there.id)
    let large = [UInt8](repeating: 1, count: 500_000)
    var sent = 0
    // What the kernel does not take stays above the mark below which the queue counts as drained.
    #expect(
      waitUntil {
        guard a.transport.queuedBytes(of: pair.here.id) ?? 0 < 4_000_000 else { return true }
        sent += a.transport.send(pair.here.id, large) == .queued ? 1 : 0
        return false
      })
    // The kernel may take some more meanwhile.
    #expect(
      waitUntil {
        while sent < 100_000, a.transport.send(pair.here.id, [7]) == .queued { sent += 1 }
        return a.transport.queuedFrames(of: pair.here.id) == 1_000
      })
    #expect(a.transport.queuedBytes(of: pair.here.id) ?? .max < TransportConfiguration().sendQueueByteLimit)
    // While the kernel took the large frames the queue may have drained before.
    let before = a.recorder.now.drained.count
    b.transport.resumeReading(pair.there.id)
    #expect(a.recorder.wait { $0.drained.count > before })
    #expect(a.transport.send(pair.here.id, [8]) == .queued)
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == sent + 1 })
    #expect(waitUntil { a.transport.queuedFrames(of: pair.here.id) == 0 })
    #expect(a.transport.queuedBytes(of: pair.here.id) == 0)
  }

  @Test("a full queue of the smallest frames lies above the mark, or nobody would be told that it has drained")
  func limits() {
    let configuration = TransportConfiguration()
    let smallest = QueueCost(SendQueue.wireByteCount([1]), frameCount: 1).byteCount
    #expect(configuration.sendQueueFrameLimit * smallest > configuration.mostQueueByteMark)
  }

  @Test("a pause asked for while frames are delivered lets no more of them through than one record holds")
  func pause() throws {
    let (a, b) = (try Node(seed: 1) { $0.leastKernelByteLimit = 1_000_000 }, try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    b.transport.pauseReading(pair.there.id)
    let (count, frame) = (6_000, [UInt8](repeating: 7, count: 100))
    #expect(a.transport.send(pair.here.id, [[UInt8]](repeating: frame, count: count)) == .queued)
    // All of it is in the kernel, to be read in one turn.
    #expect(waitUntil { a.transport.queuedBytes(of: pair.here.id) == 0 })
    let transport = b.transport
    let mustPause = Mutex(true)
    b.recorder.whenFrame { id, _ in if mustPause.withLock({ $0 }), id == pair.there.id { transport.pauseReading(id) } }
    b.transport.resumeReading(pair.there.id)
    #expect(b.recorder.wait { $0.frames[pair.there.id] != nil })
    // Whatever else the IO thread would do with the input happens before it answers another peer.
    let other = try Node(seed: 200, listening: false)
    let second = try #require(other.connectAuthenticated(to: b))
    other.transport.send(second.here.id, [1])
    #expect(b.recorder.wait { $0.frames[second.there.id] == [[1]] })
    let perRecord = IOLoop.recordByteCount / SendQueue.wireByteCount(frame)
    #expect(b.recorder.now.frames[pair.there.id]?.count ?? 0 <= perRecord + 1)
    mustPause.withLock { $0 = false }
    b.transport.resumeReading(pair.there.id)
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == count })
  }
}
