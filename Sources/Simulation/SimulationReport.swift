/// What a run found.
package struct SimulationReport: Sendable {
  package struct Violation: Sendable, Equatable, CustomStringConvertible {
    /// The invariant, such as `I2`, or the bound.
    package let rule: String
    /// Virtual milliseconds since the start.
    package let time: UInt64
    package let what: String

    package var description: String { "\(rule) at \(time) ms: \(what)" }
  }

  package let seed: UInt64
  /// Inputs given to nodes' engines: frames, timers, calls, crashes.
  package internal(set) var events = 0
  /// Partitions of nodes that were held against the naive rules.
  package internal(set) var judgements = 0
  /// Documents that were held against what a write had asked for, right behind its commit.
  package internal(set) var intents = 0
  package internal(set) var usesDisk = false
  package internal(set) var virtualMilliseconds: UInt64 = 0
  /// From the end of the faults to the moment when all agreed.
  package internal(set) var convergenceMilliseconds: UInt64 = 0
  package internal(set) var changes = 0
  package internal(set) var faults: [Fault: Int] = [:]
  package internal(set) var occurrences: [Occurrence: Int] = [:]
  /// At most ``violationLimit``.
  package internal(set) var violations: [Violation] = []
  /// Over every event, frame and commit in order: equal for equal runs.
  package internal(set) var traceHash: UInt64 = 0
  /// The last lines of what happened, where they were asked for.
  package internal(set) var log: [String] = []

  static let violationLimit = 8
  static let logLimit = 4_000

  package init(seed: UInt64) { self.seed = seed }

  package var hasFailed: Bool { !violations.isEmpty }
  package var rerunCommand: String { "seamesh simulate --seed \(seed)" }
}
