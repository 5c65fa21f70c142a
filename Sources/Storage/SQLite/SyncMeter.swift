import Synchronization

/// How long the syncs of a store take: what nobody can hurry, and what each acknowledged write waits for. Any thread may ask.
package final class SyncMeter: Sendable {
  package struct Figures: Sendable, Equatable {
    /// Since the start.
    package var count: UInt64 = 0
    /// Of the latest ones, ``SyncMeter/limit`` at the most; 0 where there were none.
    package var medianMicroseconds: UInt64 = 0
    package var slowMicroseconds: UInt64 = 0
    package var longestMicroseconds: UInt64 = 0
    package init() {}
  }

  private struct State {
    var latest: [UInt64] = []
    var count: UInt64 = 0
    var nanoseconds: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Syncs that are remembered: some minutes of a node that is written to.
  package static let limit = 1_024

  package init() {}

  package func note(nanoseconds: UInt64) {
    state.withLock { state in
      let microseconds = nanoseconds / 1_000
      let place = Int(state.count % UInt64(SyncMeter.limit))
      if place < state.latest.count { state.latest[place] = microseconds } else { state.latest.append(microseconds) }
      state.count += 1
      state.nanoseconds &+= nanoseconds
    }
  }

  package var count: UInt64 { state.withLock { $0.count } }
  /// Of all of them together.
  package var nanoseconds: UInt64 { state.withLock { $0.nanoseconds } }

  /// Half of the latest took no longer than the median, and 99 of 100 no longer than the slow ones.
  package var figures: Figures {
    let (latest, count) = state.withLock { ($0.latest, $0.count) }
    let sorted = latest.sorted()
    guard let longest = sorted.last else { return Figures() }
    var figures = Figures()
    figures.count = count
    figures.medianMicroseconds = sorted[sorted.count / 2]
    figures.slowMicroseconds = sorted[sorted.count * 99 / 100]
    figures.longestMicroseconds = longest
    return figures
  }
}
