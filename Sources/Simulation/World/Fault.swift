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
  /// The power goes in the middle of a commit; what was not synced is lost, kept or torn.
  case crashInCommit
  /// A node starts with another wall clock, or its clock jumps while it runs.
  case clockJump
  /// A node reads nothing from a connection for a while.
  case stalledReader
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
  /// The disk fails for good: the process ends and another opens what is there.
  case diskFailed
  /// The root lowers a grant, or raises it again.
  case rightChanged
  /// A member whose every unsigned word may be wrong.
  case liar
  /// Discovery names addresses where nobody is, or somebody else, and forgets who is there.
  case falseSighting
  /// Writes that are too large to travel inside their run.
  case largePayload
}

/// What happened on purpose, for the tests that every path is really walked.
package enum Occurrence: String, CaseIterable, Sendable, Hashable {
  case joined
  /// Two admins said something of rights, neither of whom knew of the other's.
  case adminsAtOnce
  case subscribed
  case unsubscribed
  case runWithSeveralChanges
  case replicaRenewed
  case meshRestarted
  case paused
  /// A frame arrived where nothing more is read for now.
  case readingPaused
  case forkSeen
  case excusedLoss
  case heldOnOtherBranch
  case reissued
  case lie
  /// A liar claimed more of a peer's own chain than that peer wrote.
  case boast
  case writeRefused
  /// A member began one partition after the other.
  case flooded
  /// Statements that one member had signed beyond what one device may.
  case signedBeyond
  /// An honest node dropped one that it had kept, since earlier ones of the same device came.
  case displaced
  /// A run was left out because its device had taken what it may.
  case leftOut
  /// A node of the earlier build came up under the later one (``BuildMix``).
  case upgraded
  /// It held what the others counted.
  case heldByEarlier
  /// What it held, or counted too much, was built into its documents at that start.
  case movedByUpgrade
  /// What a later build has and it had not came to it: statements of a kind and of a shape, changes with a codec and with
  /// extensions.
  case unreadKind
  case unreadShape
  case unreadCodec
  case unreadCritical
  case unreadInformative
  /// A message that anybody may pass over, and one behind a feature that the peer had announced.
  case saidOptional
  case saidFeature
  case roomMade
  /// A node's links came to let less pass.
  case linkNarrowed
  case saidInRoom
  /// A run went to a peer, and to one who had it or to whom it had gone before.
  case runSent
  case runSentAgain
  /// Why it went again (``CopyBook/Excuse``).
  case copyInDisorder
  case copyAsked
  case copyLost
  case copyOfAuthor
  case copyOfStranger
  case copyBehindGap
  /// Bytes of `have`.
  case haveBytes
  /// Somebody asked what others hold, and a word about it was kept at its author's.
  case askedForHoldings
  case saidHoldings
  /// Of relays: the ledger took a batch; a call never reached it; one took effect and nobody heard so; it took a batch
  /// that it had.
  case forwarded
  case callLost
  /// A lost call takes effect later, behind what others sent meanwhile.
  case calledLate
  case answerLost
  case forwardedAgain
  /// The backend was away, and came back with an older ledger.
  case backendAway
  case ledgerRestored
  /// The ledger left something as another relay had said it.
  case leftToOther
  /// The ledger took a document without its body.
  case deadLetter
  /// A relay heard that the ledger has less than it had.
  case ledgerLacked
  /// The office asked for something; a relay wrote it; it was refused for good.
  case officeAsked
  case officeWritten
  case officeRefused
  /// One of several relays forwards no more.
  case relayRetired
  /// A copy of a relay's machine forwards, too.
  case relayCloned
  /// Of a relay and its copy one was told that the other forwards.
  case copyRefused
  /// What a relay had read back was said under its signature.
  case saidBackend
  /// A node may lose a partition with its store, it says.
  case safeToWipe
  /// No relay knew all that the ledger has of a partition, when all was quiet.
  case knownToNobody
}
