/// Names one connection for its lifetime. The shell gives the numbers and never uses one twice.
package struct SessionID: Hashable, Comparable, Sendable {
  package let rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }
  package static func < (a: SessionID, b: SessionID) -> Bool { a.rawValue < b.rawValue }

  /// Stands where a session is named, for what came from a ledger: no connection ever has it.
  static let ledger = SessionID(rawValue: .max)
}

/// Who this node is, for the lifetime of the process.
package struct LocalIdentity: Sendable {
  package let fleet: FleetID
  package let device: PublicKey
  /// Random per process.
  package let instance: UUIDValue
  /// This device's own membership, as it was signed, and what is needed to believe it.
  package var credentials: [[UInt8]]
  package var listenPort: UInt16

  package init(
    fleet: FleetID, device: PublicKey, instance: UUIDValue, credentials: [[UInt8]], listenPort: UInt16 = 0
  ) {
    (self.fleet, self.device, self.instance) = (fleet, device, instance)
    (self.credentials, self.listenPort) = (credentials, listenPort)
  }
}

/// Intervals and bounds of a mesh; the defaults are the protocol's, tests and simulations shorten them.
package struct MeshConfiguration: Sendable {
  /// What one device may make this node keep of it.
  package var takes = DeviceTakeLimits()
  /// Statements of one device that count in one scope: the same in a whole fleet, and less in simulated worlds alone (rule
  /// C26).
  package var statementLimit = Allowance.statementLimit
  /// From connection to the end of the handshake (W4).
  package var handshakeMilliseconds: UInt64 = 10_000
  /// Silence after which a ping goes out; `N2` asks for at most 15 s.
  package var pingMilliseconds: UInt64 = 15_000
  /// Silence after which a peer is dead; `N2` asks for at most 45 s.
  package var deadMilliseconds: UInt64 = 30_000
  /// Between two comparisons of summaries, give or take a quarter.
  package var antiEntropyMilliseconds: UInt64 = 30_000
  /// How long a run that came from elsewhere waits before it is passed on to a peer who has not said that it has it.
  /// Without the wait every node of a LAN would send every run to every other.
  package var relayMilliseconds: UInt64 = 40
  /// How long what comes over a new link waits at least: others that are about to link with the same device get it from there.
  package var meetingMilliseconds: UInt64 = 2_000
  /// How long what somebody brought waits to be announced to him, together with what comes meanwhile; to others twice as
  /// long.
  package var gatherMilliseconds: UInt64 = 1_000
  /// How long it waits to be told which chains peers are to push, and which not, together with what is found of others meanwhile.
  package var choiceMilliseconds: UInt64 = 100
  /// A device that was linked with is given so long to be back before others are told.
  package var returnMilliseconds: UInt64 = 1_000
  /// After so long in which a chain stood still of which others have more, one who has it is asked to push it, and after twice as long all:
  /// before it is pulled.
  package var standingMilliseconds: UInt64 = 1_000
  /// After so long without what others were to bring, it is asked of who has it.
  package var broughtMilliseconds: UInt64 = 3_000
  /// The same while a peer does the catch-up that has sent all it was asked for, and has named more since.
  package var leftToOthersMilliseconds: UInt64 = 500
  /// After so long without progress the next peer may do a partition's catch-up.
  package var catchUpSilenceMilliseconds: UInt64 = 5_000
  /// Bytes asked of the log at once.
  package var loadByteLimit = 1_024 * 1_024
  /// The same on a thin link.
  static let thinLoadByteLimit = 32 * 1_024
  /// Statements that one session is told at once.
  package var statementWindowByteCount = 1_024 * 1_024
  /// The most that is asked of it, where all that was read is held back.
  package var largestLoadByteLimit = 16 * 1_024 * 1_024
  package var sessionLimit = 256
  package var holdings = HoldingsRules()

  package init() {}
}

/// A run as the log has it, for sending.
package struct LoggedRun: Sendable, Equatable {
  package let replica: ReplicaID
  package let first: UInt64
  package let last: UInt64
  package let hashBefore: Digest
  /// Needed of forked chains alone, whose log holds runs of several branches; nil elsewhere.
  package let hashAtLast: Digest?
  package let context: VersionVector
  package let encoded: ArraySlice<UInt8>
  /// A payload that travels ahead of the run, in pieces.
  package let apart: ApartPayload?

  package init(
    replica: ReplicaID, first: UInt64, last: UInt64, hashBefore: Digest, hashAtLast: Digest? = nil,
    context: VersionVector, encoded: ArraySlice<UInt8>, apart: ApartPayload? = nil
  ) {
    (self.replica, self.first, self.last) = (replica, first, last)
    (self.hashBefore, self.hashAtLast, self.context) = (hashBefore, hashAtLast, context)
    (self.encoded, self.apart) = (encoded, apart)
  }

  /// What sending it puts on the wire, roughly.
  package var byteCount: Int { encoded.count + (apart?.bytes.count ?? 0) }
}

package struct ApartPayload: Sendable, Equatable {
  package let hash: Digest
  package let bytes: ArraySlice<UInt8>
  package init(hash: Digest, bytes: ArraySlice<UInt8>) { (self.hash, self.bytes) = (hash, bytes) }
}

/// A run off the wire: hashes recomputed and signature checked, its context still in the sender's form.
package struct IncomingRun: Sendable {
  package let replica: ReplicaID
  package let first: UInt64
  package let hashBefore: Digest
  package let contextDigest: Digest
  package let context: ContextForm
  /// The chain hash after each change.
  package let hashes: [Digest]
  package let facts: [ChangeFacts]
  /// Highest changes whose list elements are named; the context must cover them (rule M4).
  package let elementDots: [ReplicaID: UInt64]
  /// Who signed, so that the core can hold it against the declaration of the replica.
  package let signer: PublicKey?
  package let encoded: ArraySlice<UInt8>
  package let documents: RunDocuments

  package init(
    replica: ReplicaID, first: UInt64, hashBefore: Digest, contextDigest: Digest, context: ContextForm,
    hashes: [Digest], facts: [ChangeFacts], elementDots: [ReplicaID: UInt64], signer: PublicKey?,
    encoded: ArraySlice<UInt8>, documents: RunDocuments
  ) {
    (self.replica, self.first, self.hashBefore) = (replica, first, hashBefore)
    (self.contextDigest, self.context, self.hashes) = (contextDigest, context, hashes)
    (self.facts, self.elementDots, self.signer) = (facts, elementDots, signer)
    (self.encoded, self.documents) = (encoded, documents)
  }
}

/// A run with its context resolved: to be made durable, then to count.
package struct DeliveredRun: Sendable {
  package let incoming: IncomingRun
  package let context: VersionVector
  /// Nil in the usual case: all of it is accepted, and nothing accepted has seen it, so that it is folded in. Otherwise
  /// what moved, and the documents concerned are built anew.
  package internal(set) var change: LogChange?

  package init(incoming: IncomingRun, context: VersionVector) {
    (self.incoming, self.context) = (incoming, context)
  }

  package var last: UInt64 { incoming.first + UInt64(incoming.hashes.count) - 1 }
}
