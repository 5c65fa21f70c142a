import Replication
import TestSupport
import Testing

@testable import Transport

@Suite("How much should wait for a connection") struct SendPaceTests {
  private let configuration = TransportConfiguration()

  /// A link with a rate, of which is asked every other millisecond, and whose kernel is filled as far as it may be.
  private struct Link {
    var pace: SendPace
    var now: MonotonicTime = 1_000
    var (taken, acknowledged) = (0, 0)
    var roundTrip = 0
    private(set) var mostUnderWay = 0

    init(_ configuration: TransportConfiguration) { pace = SendPace(configuration) }

    mutating func run(bytesPerMillisecond: Int, milliseconds: Int = 2_000, isFed: Bool = true) {
      mostUnderWay = 0
      for _ in 0..<milliseconds / 2 {
        now = now + 2
        acknowledged = min(taken, acknowledged + 2 * bytesPerMillisecond)
        while mayTake() {
          guard isFed else {
            taken = acknowledged
            pace.noteEmpty()
            break
          }
          taken += 16 * 1_024
          guard taken - acknowledged < 8 * 1_024 * 1_024 else { break }
        }
        mostUnderWay = max(mostUnderWay, taken - acknowledged)
      }
    }

    mutating func mayTake() -> Bool {
      pace.mayTake(
        SendPace.Kernel(
          underWay: taken - acknowledged, acknowledged: UInt64(acknowledged), leastRoundTripMilliseconds: roundTrip),
        now)
    }
  }

  @Test("it comes to what the link takes away within the time, up and down, and stays within its bounds")
  func follows() {
    var link = Link(configuration)
    #expect(link.pace.byteMark == configuration.leastQueueByteMark)
    let time = Int(configuration.queueMilliseconds)
    for rate in [2_500, 12_500, 5_000, 2_500] {
      link.run(bytesPerMillisecond: rate)
      #expect(abs(link.pace.byteMark - rate * time) < rate * time / 10)
    }
    link.run(bytesPerMillisecond: 500)
    #expect(link.pace.byteMark == configuration.leastQueueByteMark)
    link.run(bytesPerMillisecond: 500)
    #expect(link.mostUnderWay < configuration.leastKernelByteLimit + 16 * 1_024)
    link.run(bytesPerMillisecond: 100_000)
    #expect(link.pace.byteMark == configuration.mostQueueByteMark)
  }

  @Test("a fast link is known to be one within 100 ms, or a short transfer would be over before")
  func fast() {
    var link = Link(configuration)
    link.run(bytesPerMillisecond: 100_000, milliseconds: 100)
    #expect(link.pace.byteMark == configuration.mostQueueByteMark)
  }

  @Test("what a long way holds may be under way beside what may wait")
  func longWay() {
    var link = Link(configuration)
    link.roundTrip = 600
    link.run(bytesPerMillisecond: 500)
    link.run(bytesPerMillisecond: 500)
    #expect(link.mostUnderWay > 500 * 600)
  }

  @Test("time in which little is sent makes nothing shorter, and nothing moves what is kept short")
  func idle() {
    var link = Link(configuration)
    link.run(bytesPerMillisecond: 5_000)
    let mark = link.pace.byteMark
    link.run(bytesPerMillisecond: 5_000, isFed: false)
    #expect(link.pace.byteMark == mark && mark > 2 * configuration.leastQueueByteMark)
    link.pace.keepShort()
    link.run(bytesPerMillisecond: 100_000)
    #expect(link.pace.byteMark == configuration.leastQueueByteMark)
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
