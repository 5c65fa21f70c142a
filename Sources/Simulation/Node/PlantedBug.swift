/// A mistake of what the engine stands on, planted to show that the checks see it. Those of the engine itself, and of all
/// else that ships, are planted by `Tools/prove` in a copy of the sources.
package enum PlantedBug: String, CaseIterable, Sendable {
  /// Now and then the log takes a run and does not have it.
  case runLost
  /// A chain's marks are written once.
  case marksNotMoved
  /// Accepted runs do not reach the documents.
  case foldSkipped
  /// One document fewer is built anew than was asked for.
  case rebuildSkipsOne
  /// Payloads that travel apart are not kept.
  case payloadLost
  /// Statements of replicas are not kept.
  case declarationLost
  /// The replica id is not written down.
  case replicaForgotten
  /// How far the own chains have come is not written down.
  case progressForgotten
  /// Whoever writes a document does not find the one that is there.
  case documentNotFound
  /// A run's context is kept without what its author had seen.
  case contextForgotten
  /// The mark beside the store is not written.
  case markNotSaved
  /// Nobody is told of some commits.
  case feedSilent
  /// Now and then a forwarder hears that a batch is in, and it is not.
  case lossTakenForDone
  /// A ledger that was put back answers as it did before.
  case answersOfBefore
  /// Whoever knows less takes the place of whoever knew more.
  case olderWordWins
  /// Now and then a document of a batch is not written.
  case documentForgotten
  /// Every relay is given every edit of the office.
  case editForEverybody

  /// Those of a backend and of the way there.
  package static let ashore: Set<PlantedBug> = [
    .lossTakenForDone, .answersOfBefore, .olderWordWins, .documentForgotten, .editForEverybody,
  ]
}
