import Forwarding
import Replication

/// Which process speaks for a relay (decision 51), as `seamesh.hold_relay` has it.
struct RelayHold: Equatable {
  var process: String
  var seen: UInt64
  /// Another took their place: ended, as far as is known.
  var displaced: [String] = []
  /// Who they had displaced went on: they give way.
  var evicted: [String] = []

  static let processLimit = 16
}

extension ModelLedger {
  /// What a relay is told whose place a copy of it has.
  static let copySentence = "a copy of this device forwards"

  /// - Parameter silence: so long the process that speaks may be silent before one that gave way takes its place.
  mutating func hold(
    _ relay: DeviceID, _ process: String, at now: UInt64, silence: UInt64
  ) throws(BackendProblem) {
    guard !process.isEmpty else { return }
    guard var held = holds[relay] else { return holds[relay] = RelayHold(process: process, seen: now) }
    if held.process != process {
      if held.displaced.contains(process) {
        held.displaced.removeAll { $0 == process }
        held.evicted = Array(([held.process] + held.evicted).prefix(RelayHold.processLimit))
      } else if held.evicted.contains(process), now - min(now, held.seen) < silence {
        throw BackendProblem(.refused, ModelLedger.copySentence)
      } else {
        held.evicted.removeAll { $0 == process }
        held.displaced = Array(([held.process] + held.displaced).prefix(RelayHold.processLimit))
      }
    }
    (held.process, held.seen) = (process, now)
    holds[relay] = held
  }
}
