import Engine
import Testing

@testable import Storage

/// When the write-ahead log is carried over, and how much at once.
@Suite struct CarryPlanTests {
  /// 16 MiB and 256 MiB of pages of 16 KiB.
  private static let limits: [WritePace: Int32] = [.live: 1_024, .catchUp: 16_384]

  /// A plan that expectations can ask.
  private final class Asked {
    var plan: CarryPlan
    init(isTimed: Bool) { plan = CarryPlan(limits: limits, isTimed: isTimed) }

    /// All that is in the log waits.
    func isDue(_ occasion: CarryOccasion, _ pace: WritePace, _ frames: Int32) -> Bool {
      plan.isDue(occasion, pace, waiting: frames, inLog: frames)
    }
  }

  @Test("where nobody waits a log grows to the limit of its pace, and at rest to a quarter of the smaller one")
  func limitsOfPaces() {
    let asked = Asked(isTimed: false)
    #expect(!asked.isDue(.busy, .live, 1_023))
    #expect(asked.isDue(.busy, .live, 1_024))
    #expect(!asked.isDue(.busy, .catchUp, 16_383))
    #expect(asked.isDue(.busy, .catchUp, 16_384))
    #expect(!asked.isDue(.idle, .catchUp, 255))
    #expect(asked.isDue(.idle, .catchUp, 256))
    #expect(asked.plan.waitsForQuiet(waiting: 256, inLog: 256) && !asked.plan.waitsForQuiet(waiting: 255, inLog: 255))
  }

  @Test("a slow disk gets smaller pieces: 20 ms while somebody waits, 200 ms otherwise, and never next to nothing")
  func measured() {
    let asked = Asked(isTimed: true)
    for _ in 0..<40 { asked.plan.note(carried: 1_000, nanoseconds: 1_000 * 100_000) }
    #expect(!asked.isDue(.attended, .live, 190))
    #expect(asked.isDue(.attended, .live, 210))
    #expect(!asked.isDue(.busy, .catchUp, 1_900))
    #expect(asked.isDue(.busy, .catchUp, 2_100))
    for _ in 0..<40 { asked.plan.note(carried: 1_000, nanoseconds: 1_000 * 100_000_000) }
    #expect(!asked.isDue(.attended, .live, CarryPlan.leastFrames - 1))
    #expect(asked.isDue(.attended, .live, CarryPlan.leastFrames))
  }

  @Test("what came in while nobody wrote is left until nobody writes any more, or is too much")
  func backlog() {
    let asked = Asked(isTimed: false)
    #expect(!asked.isDue(.busy, .catchUp, 10_000))
    #expect(!asked.isDue(.attended, .live, 10_010))
    #expect(!asked.isDue(.attended, .live, 32_767))
    #expect(asked.isDue(.attended, .live, 32_768))
    #expect(asked.isDue(.busy, .live, 10_020), "a moment in which nobody writes")
    asked.plan.note(carried: 10_020, nanoseconds: 0)
    #expect(asked.isDue(.attended, .live, 1_024), "what comes from now on is in small pieces")
  }

  @Test("what a reader holds back is not tried at each commit, and at once where the log begins anew")
  func heldBack() {
    let asked = Asked(isTimed: false)
    #expect(asked.isDue(.busy, .live, 1_024))
    asked.plan.noteLeft(inLog: 1_024, .live)
    #expect(!asked.isDue(.busy, .live, 1_280) && !asked.plan.waitsForQuiet(waiting: 1_280, inLog: 1_280))
    #expect(asked.isDue(.busy, .live, 1_281))
    asked.plan.noteLeft(inLog: 1_281, .live)
    #expect(asked.isDue(.idle, .live, 300))
  }

  @Test("syncs are counted, and the latest of them told by their median, their slowest hundredth and the longest")
  func figures() {
    let meter = SyncMeter()
    #expect(meter.figures == SyncMeter.Figures())
    for number in 1...100 as ClosedRange<UInt64> { meter.note(nanoseconds: number * 1_000_000) }
    #expect(meter.figures.count == 100 && meter.figures.medianMicroseconds == 51_000)
    #expect(meter.figures.slowMicroseconds == 100_000 && meter.figures.longestMicroseconds == 100_000)
    for _ in 0..<SyncMeter.limit { meter.note(nanoseconds: 2_000) }
    #expect(meter.figures.longestMicroseconds == 2 && meter.figures.count == 1_124)
    #expect(meter.nanoseconds == 5_050_000_000 + 1_024 * 2_000)
  }
}
