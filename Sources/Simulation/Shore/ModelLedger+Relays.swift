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
  /// False: it took its place back, and was not heard since.
  var isHeard = true
  /// Who took their place back before.
  var returned: [String] = []

  static let processLimit = 16

  /// Puts a process before the others of a list.
  static func noting(_ process: String, in list: [String]) -> [String] {
    Array(([process] + list.filter { $0 != process }).prefix(processLimit))
  }
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
    let silent = now - min(now, held.seen)
    if held.process == process {
      // Within that it may be the last calls of one that was killed.
      guard silent > silence / 120 else { return }
      held.isHeard = true
    } else if held.displaced.contains(process) {
      held.displaced.removeAll { $0 == process }
      held.evicted = RelayHold.noting(held.process, in: held.evicted)
      held.isHeard = held.returned.contains(process)
      held.returned = RelayHold.noting(process, in: held.returned)
    } else if held.evicted.contains(process), silent < (held.isHeard ? silence : silence / 40) {
      throw BackendProblem(.refused, ModelLedger.copySentence)
    } else {
      held.evicted.removeAll { $0 == process }
      held.displaced = RelayHold.noting(held.process, in: held.displaced)
      held.isHeard = true
    }
    (held.process, held.seen) = (process, now)
    holds[relay] = held
  }
}
