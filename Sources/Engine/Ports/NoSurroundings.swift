import Replication

// What an engine stands on that meets nobody, and that nobody looks at: it takes what it is given, and nothing else.

package final class NoLinks: EngineLinks {
  package init() {}
  package func send(_ frame: [UInt8], on session: SessionID) -> LinkSending { .closed }
  package func close(_ session: SessionID, afterFlush: Bool) {}
  package func authenticate(_ session: SessionID) {}
  package func dial(_ address: PeerAddress, tag: UInt64) {}
  package func release(_ session: SessionID, byteCount: Int) {}
  package func queuedByteCount(of session: SessionID) -> Int { 0 }
  package func queueByteMark(of session: SessionID) -> Int { .max }
  package func holdUp(_ session: SessionID) {}
  package func letGo(_ session: SessionID) {}
  package func adopt(_ authority: Authority) {}
  package func passage(of session: SessionID) -> Passage? { nil }
  package func keepShort(_ session: SessionID) {}
  package func closeStranded() {}
  package func text(of address: SocketAddress) -> String { "" }
  package var frameOverheadByteCount: Int { 0 }
}

package final class NoMark: ReplicaMark {
  package init() {}
  package func causes(_ store: RenewalEvidence.Store) throws -> [RenewalCause] { [] }
  package func save(store: UUIDValue, replica: Incarnation?, resting: [RestingReplica], reached: UInt64) throws {}
  package func resting(beside replica: Incarnation) throws -> [RestingReplica] { [] }
  package func discard() throws {}
}

package final class NoJournal: EngineJournal {
  package init() {}
  package func note(_ level: LogLevel, _ message: String, _ facts: KeyValuePairs<String, JournalFact>) {}
}

package final class NoListener: CommitListener {
  package init() {}
  package func committed(_ record: CommitRecord) {}
}
