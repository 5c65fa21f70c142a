import Replication

/// How much should wait for one connection, here and in the kernel: what its peer acknowledges within a time. A value without IO.
struct SendPace {
  /// What the kernel says of a connection.
  struct Kernel {
    /// Taken and not acknowledged.
    var underWay: Int
    var acknowledged: UInt64
    var leastRoundTripMilliseconds: Int
  }

  /// More than this should not wait here.
  private(set) var byteMark: Int
  /// Nor should more than this be under way in the kernel, where it stands before what comes up next as well. On top of what
  /// may wait it has what the way holds: nobody would fill that otherwise.
  private var kernelByteLimit: Int
  private let bounds: ClosedRange<Int>
  private let leastKernelByteLimit: Int
  private let milliseconds: Int
  private var isFixed = false
  private var measure: (since: MonotonicTime, acknowledged: UInt64)?
  /// Since the measure began there was always something to send, and the kernel had enough of it.
  private var isLinkBusy = false

  private static let measureMilliseconds: UInt64 = 50
  /// Enough where twice the mark went through meanwhile: a fast link is to be known before a short transfer is over.
  private static let shortMeasureMilliseconds: UInt64 = 4
  /// Much of so long a time nothing was sent.
  private static let staleMilliseconds: UInt64 = 1_000

  init(_ configuration: TransportConfiguration) {
    bounds =
      configuration.leastQueueByteMark...max(configuration.leastQueueByteMark, configuration.mostQueueByteMark)
    leastKernelByteLimit = configuration.leastKernelByteLimit
    milliseconds = Int(configuration.queueMilliseconds)
    (byteMark, kernelByteLimit) = (bounds.lowerBound, leastKernelByteLimit)
  }

  /// As little as may be waits here, however fast it goes.
  mutating func keepShort() { (byteMark, isFixed) = (bounds.lowerBound, true) }

  /// Nothing waits here: from now on a measure says what was sent, not what could have been.
  mutating func noteEmpty() { isLinkBusy = false }

  /// Whether the kernel is to take more now.
  mutating func mayTake(_ kernel: Kernel, _ now: MonotonicTime) -> Bool {
    look(kernel, now)
    guard byteMark < bounds.upperBound, kernel.underWay >= kernelByteLimit else { return true }
    return false
  }

  private mutating func look(_ kernel: Kernel, _ now: MonotonicTime) {
    guard let begun = measure, now >= begun.since,
      now.millisecondsSince(begun.since) < SendPace.staleMilliseconds,
      kernel.acknowledged >= begun.acknowledged
    else {
      (measure, isLinkBusy) = ((now, kernel.acknowledged), true)
      return
    }
    let elapsed = now.millisecondsSince(begun.since)
    let byteCount = Int(Int32(clamping: kernel.acknowledged - begun.acknowledged))
    let isFast = elapsed >= SendPace.shortMeasureMilliseconds && byteCount >= 2 * byteMark
    guard isFast || elapsed >= SendPace.measureMilliseconds else { return }
    adapt(byteCount, Int(elapsed), kernel.leastRoundTripMilliseconds)
    (measure, isLinkBusy) = ((now, kernel.acknowledged), true)
  }

  /// By a factor of two at the most, since one measure may be of a moment.
  private mutating func adapt(_ byteCount: Int, _ elapsed: Int, _ roundTrip: Int) {
    if !isFixed {
      let taken = byteCount * milliseconds / elapsed
      let near = min(max(taken, isLinkBusy ? byteMark / 2 : byteMark), byteMark * 2)
      byteMark = min(max(near, bounds.lowerBound), bounds.upperBound)
    }
    kernelByteLimit = max(leastKernelByteLimit, byteMark / 2) + 2 * byteCount * roundTrip / elapsed
  }
}
