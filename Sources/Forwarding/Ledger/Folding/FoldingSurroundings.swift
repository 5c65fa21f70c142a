import Engine
import Links
import Replication

// What an engine stands on that has no neighbours, no user and no time: it folds what it is given, and nothing else.

final class StandingClock: EngineClock {
  let now = MonotonicTime(milliseconds: 1_000)
  let wallMilliseconds: Int64 = 0
}

final class NoLinks: EngineLinks {
  func send(_ frame: [UInt8], on session: SessionID) -> LinkSending { .closed }
  func close(_ session: SessionID, afterFlush: Bool) {}
  func authenticate(_ session: SessionID) {}
  func dial(_ address: PeerAddress, tag: UInt64) {}
  func release(_ session: SessionID, byteCount: Int) {}
  func queuedByteCount(of session: SessionID) -> Int { 0 }
  func queueByteMark(of session: SessionID) -> Int { .max }
  func holdUp(_ session: SessionID) {}
  func letGo(_ session: SessionID) {}
  func adopt(_ authority: Authority) {}
  func passage(of session: SessionID) -> Passage? { nil }
  func keepShort(_ session: SessionID) {}
  func closeStranded() {}
  func text(of address: SocketAddress) -> String { "" }
  var frameOverheadByteCount: Int { 0 }
}

final class NoMark: ReplicaMark {
  func causes(_ store: RenewalEvidence.Store) throws -> [RenewalCause] { [] }
  func save(store: UUIDValue, replica: Incarnation?, reached: UInt64) throws {}
  func discard() throws {}
}

final class NoJournal: EngineJournal {
  func note(_ level: LogLevel, _ message: String, _ facts: KeyValuePairs<String, JournalFact>) {}
}

final class NoListener: CommitListener {
  func committed(_ record: CommitRecord) {}
}
