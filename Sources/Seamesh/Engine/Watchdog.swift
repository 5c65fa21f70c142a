import Kernel
import Synchronization
import Transport

/// Ends, or has somebody end, a node of which a thread does not come back from a step: a disk that hangs, a fault of the
/// program. Acknowledged writes are on disk; a start anew is better than a node that holds its places and answers nobody (K6).
final class Watchdog: Sendable {
  private let beats: [ThreadBeat]
  private let rules: WatchRules
  private let stopped = TimedSemaphore()

  init(_ beats: [ThreadBeat], _ rules: WatchRules) throws(SystemError) {
    (self.beats, self.rules) = (beats, rules)
    try DedicatedThread.start("seamesh watch") { [self] in watch() }
  }

  func stop() { stopped.signal() }

  /// Counts its own looks and no clock: while the process was stopped or the machine slept, nobody hung.
  private func watch() {
    var watch = HangWatch(beats.count)
    while !stopped.wait(milliseconds: rules.lookMilliseconds) {
      guard let hung = watch.look(beats.map(\.step), limit: rules.lookLimit) else { continue }
      let seconds = UInt64(rules.lookLimit) * rules.lookMilliseconds / 1_000
      rules.end("the thread \(beats[hung].name) has not come back for \(seconds) s")
    }
  }
}

/// When a thread counts as hung, and what then happens.
package struct WatchRules: Sendable {
  package var lookMilliseconds: UInt64 = 1_000
  /// Looks on end that see a thread at the same step. Far above the longest step of a healthy node, which writes anew what a
  /// narrowed right took out of a partition of a million documents.
  package var lookLimit = 300
  /// Called with one sentence, on a thread of its own, once for each time that a thread hangs.
  package var end: @Sendable (String) -> Void = { _ in }

  package init() {}
}

/// For how many looks each of some threads has been at the same step.
struct HangWatch {
  private var steps: [UInt64?]
  private var looks: [Int]

  init(_ count: Int) { (steps, looks) = ([UInt64?](repeating: nil, count: count), [Int](repeating: 0, count: count)) }

  /// The first that has been at its step for exactly `limit` looks.
  mutating func look(_ now: [UInt64?], limit: Int) -> Int? {
    for (place, step) in now.enumerated() {
      looks[place] = step != nil && step == steps[place] ? looks[place] + 1 : 0
      steps[place] = step
    }
    return looks.firstIndex(of: limit)
  }
}
