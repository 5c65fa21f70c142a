/// Bounds of what a forwarder holds and how often it asks.
package struct ForwarderLimits: Equatable, Sendable {
  /// Bytes of run bodies and statements in one batch; the last run may pass it, with a payload of 4 MiB at the most.
  package var batchBytes = 1024 * 1024
  /// The same over a link that is paid for, or has an order: seconds of a thin one.
  package var thinBatchBytes = 32 * 1024
  /// Changes in one batch; the last run may pass it.
  package var batchChanges = 8_192
  /// Marks in one batch.
  package var batchMarks = 8_192
  /// Chains that are asked about at once.
  package var questionChains = 1_024
  /// The first pause after a failure, doubled at each further one.
  package var firstPauseMilliseconds: UInt64 = 1_000
  package var longestPauseMilliseconds: UInt64 = 300_000
  /// So often the log is looked at though nobody told of news: another relay may have learnt something.
  package var lookMilliseconds: UInt64 = 30_000
  /// At most so often it is written down how far the ledger has come.
  package var memoryMilliseconds: UInt64 = 30_000
  /// After so long what was put aside is tried again.
  package var asideMilliseconds: UInt64 = 600_000

  /// Between two readings of what was sent.
  package var readBackMilliseconds: UInt64 = 5_000
  /// Between two readings of all that is here, which find a backend that went back though nothing was sent.
  package var readEverythingMilliseconds: UInt64 = 600_000

  /// Between two questions for edits of the office over a thin link.
  package var thinEditMilliseconds: UInt64 = 300_000

  package init() {}

  /// As they are over a link that is paid for.
  var thinned: ForwarderLimits {
    var limits = self
    limits.readBackMilliseconds = readBackMilliseconds.multipliedReportingOverflow(by: 12).partialValue
    limits.readEverythingMilliseconds = readEverythingMilliseconds.multipliedReportingOverflow(by: 36).partialValue
    limits.asideMilliseconds = asideMilliseconds.multipliedReportingOverflow(by: 36).partialValue
    return limits
  }
}

/// Pauses that grow, each drawn from its upper half so that many relays do not come back at once.
struct BackOff: Equatable, Sendable {
  private(set) var failures = 0

  mutating func next(_ limits: ForwarderLimits, _ random: inout some RandomNumberGenerator) -> UInt64 {
    let doubled = limits.firstPauseMilliseconds << UInt64(min(failures, 20))
    let pause = max(2, min(doubled, limits.longestPauseMilliseconds))
    failures += 1
    return .random(in: pause / 2...pause, using: &random)
  }

  mutating func reset() { failures = 0 }
}
