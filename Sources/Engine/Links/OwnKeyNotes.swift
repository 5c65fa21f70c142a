import Replication

/// What shows, since the start, that something else ran under this device's key: a copy of its data directory, or one that was put
/// back from a copy.
package struct OwnKeyNotes: Sendable, Equatable {
  /// Where another process showed this device's key in a session, and when, the last time.
  package private(set) var meeting: Meeting?
  /// This device's replicas of which two histories were found; a few of them.
  package private(set) var forked: Set<ReplicaID> = []

  package struct Meeting: Sendable, Equatable {
    package let address: String
    package let time: MonotonicTime
  }

  static let forkLimit = 16

  package init() {}

  package mutating func met(at address: String, _ now: MonotonicTime) { meeting = Meeting(address: address, time: now) }

  package mutating func noteFork(of replica: ReplicaID) {
    if forked.count < OwnKeyNotes.forkLimit { forked.insert(replica) }
  }
}
