import TestSupport
import Testing

@testable import Transport

@Suite("How much should wait for a connection") struct SendPaceTests {
  private let configuration = TransportConfiguration()

  /// The link takes so many bytes a millisecond, once the kernel has taken some at once; the queue is filled again and again.
  private func mark(bytesPerMillisecond: Int, _ pace: inout SendPace, now: inout UInt64) -> Int {
    for _ in 0..<20 {
      let byteCount = pace.byteMark / 2
      pace.noteWritten(16 * 1_024)
      pace.noteBlocked(now)
      now += UInt64(byteCount / bytesPerMillisecond)
      pace.noteWritten(byteCount)
      pace.noteBlocked(now)
      pace.noteDrained(now)
    }
    return pace.byteMark
  }

  @Test("it comes to what the link takes away within the time, up and down, and stays within its bounds")
  func follows() {
    var pace = SendPace(configuration)
    var now: UInt64 = 1_000
    #expect(pace.byteMark == configuration.leastQueueByteMark)
    let time = Int(configuration.queueMilliseconds)
    for rate in [2_500, 12_500, 5_000, 2_500] {
      #expect(abs(mark(bytesPerMillisecond: rate, &pace, now: &now) - rate * time) < rate * time / 10)
    }
    #expect(mark(bytesPerMillisecond: 10, &pace, now: &now) == configuration.leastQueueByteMark)
    #expect(mark(bytesPerMillisecond: 100_000, &pace, now: &now) == configuration.mostQueueByteMark)
  }

  @Test("where the kernel takes all at once more may wait, and time in which nothing waits says nothing")
  func idle() {
    var pace = SendPace(configuration)
    pace.noteWritten(100_000)
    pace.noteDrained(5)
    #expect(pace.byteMark == 2 * configuration.leastQueueByteMark)
    pace.noteBlocked(10)
    pace.noteWritten(1_000)
    pace.noteEmpty()
    pace.noteBlocked(100_000)
    pace.noteWritten(200_000)
    pace.noteDrained(100_001)
    #expect(pace.byteMark == 4 * configuration.leastQueueByteMark)
  }

  @Test("one measure moves it by a factor of two at the most, and nothing moves what is kept short")
  func bounded() {
    var pace = SendPace(configuration)
    for _ in 0..<3 { pace.noteDrained(1) }
    pace.noteBlocked(10)
    pace.noteDrained(20_000)
    #expect(pace.byteMark == 4 * configuration.leastQueueByteMark)
    pace.keepShort()
    pace.noteDrained(30_000)
    #expect(pace.byteMark == configuration.leastQueueByteMark)
  }
}

@Suite(.serialized) struct QueueMarkTests {
  @Test("whoever sees that a queue is long is told when it has drained, however it was filled")
  func told() throws {
    let (a, b) = (try Node(seed: 1), try Node(seed: 2))
    let pair = try #require(a.connectAuthenticated(to: b))
    let id = pair.here.id
    var (sent, waits) = (0, 0)
    // Frames far below the mark, so that now this thread and now the other is ahead.
    for _ in 0..<3_000 {
      #expect(a.transport.send(id, [UInt8](repeating: 1, count: 9_000)) == .queued)
      sent += 1
      let before = a.recorder.now.drained.count
      guard a.transport.isQueueLong(of: id) else { continue }
      waits += 1
      try #require(a.recorder.wait { $0.drained.count > before || !a.transport.isQueueLong(of: id) })
      try #require(waitUntil { !a.transport.isQueueLong(of: id) })
    }
    #expect(waits > 0)
    #expect(b.recorder.wait { $0.frames[pair.there.id]?.count == sent })
  }
}
