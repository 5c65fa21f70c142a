import Engine

/// When the write-ahead log is carried into the database: in pieces whose cost is bounded, beside their own syncs. SQLite
/// carries over all that there is, so a piece is small where it is carried early.
///
/// A value without IO. Counts frames of the log, each of which is a page.
struct CarryPlan {
  private let limits: [WritePace: Int32]
  /// Nil where time is not real, as on a disk in memory: then limits alone count.
  private var nanosecondsPerFrame: UInt64?
  /// More waits than a user is to wait for: what came in while nobody wrote.
  private var hasBacklog = false
  private var wasAttended = false
  /// An earlier try could not carry everything: trying at each commit would only cost time.
  private var left: (inLog: Int32, retryAbove: Int32)?

  /// What a piece may cost while somebody waits, and otherwise.
  static let attendedNanoseconds: UInt64 = 20_000_000
  static let calmNanoseconds: UInt64 = 200_000_000
  /// Two syncs for fewer frames than this are not worth it.
  static let leastFrames: Int32 = 64
  /// Before anything was measured: a page of 4 KiB to the system's cache.
  private static let assumedNanosecondsPerFrame: UInt64 = 8_000

  init(limits: [WritePace: Int32], isTimed: Bool) {
    self.limits = limits
    nanosecondsPerFrame = isTimed ? CarryPlan.assumedNanosecondsPerFrame : nil
  }

  /// - Parameters:
  ///   - waiting: frames that are not carried over yet.
  ///   - inLog: frames in the log, carried over or not.
  mutating func isDue(_ occasion: CarryOccasion, _ pace: WritePace, waiting: Int32, inLog: Int32) -> Bool {
    noteBacklog(occasion, waiting)
    // Fewer frames than then: the log has begun anew.
    if let left, inLog < left.inLog { self.left = nil }
    guard waiting > 0, mayTry(inLog) else { return false }
    switch occasion {
    case .attended: return waiting >= (hasBacklog ? greatest : attended)
    case .busy: return waiting >= frames(within: CarryPlan.calmNanoseconds, limit(pace))
    case .idle: return waiting >= idle
    }
  }

  /// What came in while nobody wrote is left until nobody does, or is too much: it cannot be carried in small pieces any
  /// more, and would be waited for.
  private mutating func noteBacklog(_ occasion: CarryOccasion, _ waiting: Int32) {
    let isAttended = occasion == .attended
    if !isAttended { hasBacklog = false } else if !wasAttended { hasBacklog = waiting > attended }
    wasAttended = isAttended
  }

  /// A quiet moment would be used.
  func waitsForQuiet(waiting: Int32, inLog: Int32) -> Bool { waiting >= idle && mayTry(inLog) }

  private func mayTry(_ inLog: Int32) -> Bool { left.map { inLog > $0.retryAbove || inLog < $0.inLog } ?? true }
  private var idle: Int32 { min(attended, max(1, limit(.live) / 4)) }
  private var attended: Int32 { frames(within: CarryPlan.attendedNanoseconds, limit(.live)) }
  /// Above this it is carried over whoever waits.
  private var greatest: Int32 { Int32(clamping: 2 * Int64(limit(.catchUp))) }
  func limit(_ pace: WritePace) -> Int32 { limits[pace] ?? limits[.live] ?? 0 }

  private func frames(within nanoseconds: UInt64, _ limit: Int32) -> Int32 {
    guard let nanosecondsPerFrame else { return limit }
    return min(limit, max(CarryPlan.leastFrames, Int32(clamping: nanoseconds / max(1, nanosecondsPerFrame))))
  }

  /// - Parameter nanoseconds: without the syncs.
  mutating func note(carried: Int32, nanoseconds: UInt64) {
    hasBacklog = false
    guard let known = nanosecondsPerFrame, carried >= CarryPlan.leastFrames else { return }
    nanosecondsPerFrame = (3 * known + nanoseconds / UInt64(carried)) / 4
  }

  /// A reader held something back, or there is no room.
  mutating func noteLeft(inLog: Int32, _ pace: WritePace) {
    left = (inLog, Int32(clamping: Int64(inLog) + Int64(limit(pace) / 4)))
  }
}
