import Replication
import Testing

@testable import SeameshCommand

@Suite struct HeapRestTests {
  private let interval = HeapRest.intervalMilliseconds

  @Test("a process that did little for an interval rests, and one that was busy does not until it did little again")
  func restsAfterWork() {
    var rest = HeapRest(now: MonotonicTime(milliseconds: 1_000), used: 500)
    let busy = HeapRest.restingMilliseconds
    let looks: [(now: UInt64, used: UInt64)] = [
      (1_000 + interval - 1, 500), (1_000 + interval, 500 + busy - 1), (1_000 + 2 * interval, 499 + 2 * busy),
      (1_000 + 3 * interval, 500 + 2 * busy), (1_000 + 3 * interval + 1, 500 + 2 * busy),
    ]
    let rested = looks.map { rest.rests(now: MonotonicTime(milliseconds: $0.now), used: $0.used) }
    #expect(rested == [false, true, false, true, false])
  }
}
