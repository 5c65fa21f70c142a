/// What may go wrong. Each run draws a subset; the report counts how often each really happened.
package enum Fault: String, CaseIterable, Sendable, Hashable {
  /// Frames take up to seconds.
  case slowNetwork
  /// A connection breaks, and what was under way is lost.
  case cut
  /// Two groups of nodes do not reach one another for a while; connections between them fall silent or break.
  case split
  /// A node stops in the middle of anything; what was not synced is lost.
  case crash
  /// A crash between the commit and telling anyone.
  case crashAfterCommit
  /// A node starts with another wall clock, or its clock jumps while it runs.
  case clockJump
  /// A node reads nothing from a connection for a while.
  case stalledReader
  /// Dials although it is connected.
  case duplicateDial
  /// The disk takes a transaction not.
  case diskFull
  /// Commits take long, so that much waits for the next one.
  case slowDisk
  /// An older copy of the directory comes back, and the node knows.
  case restoredCopy
  /// An older state of the machine comes back, and nothing on it tells.
  case rolledBack
  /// A copy of the directory runs beside the original, and nothing on it tells.
  case clonedDirectory
  /// Runs come once more on another connection.
  case duplicateRuns
}

/// What happened on purpose, for the tests that every path is really walked.
package enum Occurrence: String, CaseIterable, Sendable, Hashable {
  case joined
  case subscribed
  case unsubscribed
  case deleted
  case recreated
  case kept
  case runWithSeveralChanges
  case replicaRenewed
  case meshRestarted
  case paused
  case forkSeen
  case parked
  case excusedLoss
  case heldOnOtherBranch
  case reissued
}

/// Mistakes put into the simulated shell on purpose: the tests that the checks see them.
package enum PlantedBug: String, CaseIterable, Sendable, Hashable {
  case acknowledgeBeforeCommit
  case forgetToSync
  case sendBeforeCommit
  case skipRenewalAfterRestore
  case applyTwice
  case forgetRun
  case ignoreDeletes
  case skipRebuild
  case wrongContext
  case loseStatements
}
