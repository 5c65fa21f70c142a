import Replication

/// The two clocks of a node. The monotonic clock goes on in suspension; the wall clock may say anything.
package protocol EngineClock: AnyObject {
  var now: MonotonicTime { get }
  /// Milliseconds since 1970, UTC. For people and for the bounded part of hybrid timestamps, never for a decision.
  var wallMilliseconds: Int64 { get }
}

/// The connections of this node.
package protocol EngineLinks: AnyObject {
  func send(_ frame: [UInt8], on session: SessionID) -> LinkSending
  /// Closes a connection. With `afterFlush` what was sent before still arrives.
  func close(_ session: SessionID, afterFlush: Bool)
  /// The peer is a known member: larger frames are let through from now on.
  func authenticate(_ session: SessionID)
  /// Begins a dial, which ends in ``EngineEvent/opened(_:)`` or ``EngineEvent/dialFailed(tag:reason:isLinkClosed:)``, which give the
  /// tag back.
  func dial(_ address: PeerAddress, tag: UInt64)
  /// The engine is done with a frame of so many bytes, so that reading may go on.
  func release(_ session: SessionID, byteCount: Int)
  /// Bytes that were taken and are not written yet.
  func queuedByteCount(of session: SessionID) -> Int
  /// Reading from a peer that does not read pauses until ``letGo(_:)``.
  func holdUp(_ session: SessionID)
  func letGo(_ session: SessionID)
  /// Whoever decodes frames checks signatures under these statements.
  func adopt(_ authority: Authority)
  /// What the link under the session lets pass now; nil: nothing.
  func passage(of session: SessionID) -> Passage?
  /// So much should wait at the most, by how fast it is taken away.
  func queueByteMark(of session: SessionID) -> Int
  /// Little is to wait for it at once, and ``EngineEvent/drained(_:)`` comes early.
  func keepShort(_ session: SessionID)
  /// Connections over addresses that this host no longer has end.
  func closeStranded()
  /// The address as people write it and as it can be dialled again.
  func text(of address: SocketAddress) -> String
  /// Bytes of a frame beside its content.
  var frameOverheadByteCount: Int { get }
}

package enum LinkSending: Sendable {
  /// The frame waits. Where the queue is long ``EngineEvent/drained(_:)`` tells when it is short again.
  case queued(isLong: Bool)
  /// The frame was not taken: ``EngineEvent/drained(_:)`` tells when to try again.
  case full
  case closed
}

/// A note that stands outside of the store and vouches for it (rule C20).
package protocol ReplicaMark: AnyObject {
  /// Reasons why the store must not go on under the same replica id.
  func causes(_ store: RenewalEvidence.Store) throws -> [RenewalCause]
  /// Durable when it returns. `reached` own changes are committed already.
  func save(store: UUIDValue, replica: Incarnation?, resting: [RestingReplica], reached: UInt64) throws
  /// The ids that rested when the mark was saved last; none where another id than `replica` was the present one then.
  func resting(beside replica: Incarnation) throws -> [RestingReplica]
  /// Takes the mark away: one that is not there vouches for no store.
  func discard() throws
}

package enum LogLevel: Int, Sendable, Comparable, CaseIterable {
  case debug = 0
  case info = 1
  case notice = 2
  case error = 3

  package static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
  package var name: String { "\(self)" }
  package init?(name: String) {
    guard let level = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }
}

/// Where the engine says what it does, for people: ids and sizes, never contents or secrets (X16).
package protocol EngineJournal: AnyObject {
  func note(_ level: LogLevel, _ message: String, _ facts: KeyValuePairs<String, JournalFact>)
}

package enum JournalFact: Sendable {
  case text(String)
  case replica(ReplicaID)
  case device(DeviceID)
}

/// Who this node is and what it can sign.
package struct EngineIdentity: Sendable {
  package let fleet: FleetID
  package let device: PublicKey
  package let cryptography: Cryptography
  /// Looked for when something is to be signed with it, so that it may come and go while the node runs.
  package let root: @Sendable () -> RootSigner?

  package init(
    fleet: FleetID, device: PublicKey, cryptography: Cryptography,
    root: @escaping @Sendable () -> RootSigner? = { nil }
  ) {
    (self.fleet, self.device, self.cryptography, self.root) = (fleet, device, cryptography, root)
  }

  package var deviceID: DeviceID { DeviceID.derived(from: device, cryptography.hash) }

  package func id(of partition: PartitionName) -> PartitionID { partition.id(fleet: fleet, hash: cryptography.hash) }
}

/// How a node takes part, for the lifetime of its process.
package struct EngineOptions: Sendable {
  package var mesh = MeshConfiguration()
  /// Random per process.
  package var instance: UUIDValue
  package var listenPort: UInt16 = 0
  /// Wants everything that peers offer and this node may hold.
  package var isRelay = false
  package var limits = CommitLimits()
  /// Bytes of two full runs. Where a hundred chains lag, what may be read is divided among them, but not below this: less
  /// would be a read for nearly each run.
  package var leastReadByteCount = 64 * 1024
  /// Changes after which the mark beside the store is written anew; it is a number of changes that a rollback can hide.
  package var changesBetweenMarks: UInt64 = 1_000
  package var millisecondsBetweenMarks: UInt64 = 60_000

  package init(instance: UUIDValue) { self.instance = instance }
}

/// All that an engine stands on.
package struct EnginePorts {
  package let store: any LogStore
  package let mark: any ReplicaMark
  package let clock: any EngineClock
  package let links: any EngineLinks
  package let journal: any EngineJournal
  package let feed: any CommitListener
  package let random: any RandomNumberGenerator

  package init(
    store: any LogStore, mark: any ReplicaMark, clock: any EngineClock, links: any EngineLinks,
    journal: any EngineJournal, feed: any CommitListener, random: any RandomNumberGenerator
  ) {
    (self.store, self.mark, self.clock, self.links) = (store, mark, clock, links)
    (self.journal, self.feed, self.random) = (journal, feed, random)
  }
}
