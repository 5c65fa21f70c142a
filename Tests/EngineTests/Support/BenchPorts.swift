import Replication
import Storage
import Synchronization
import Wire

@testable import Engine

/// What an engine did that somebody outside can see, in order.
enum Trace: Equatable {
  /// A transaction began.
  case began
  /// It is durable.
  case committed
  /// It left nothing.
  case undone
  /// A frame was handed to the connection.
  case sent(SessionID, String)
  case closed(SessionID)
  /// Those who follow commits were told.
  case told
}

final class TraceBook {
  private(set) var entries: [Trace] = []
  func note(_ entry: Trace) { entries.append(entry) }
  func clear() { entries = [] }
  var commits: Int { entries.count { $0 == .committed } }
}

/// Time that only the test moves.
final class BenchClock: EngineClock {
  var now = MonotonicTime(milliseconds: 1_000)
  var wallMilliseconds: Int64 = 1_800_000_000_000
  func advance(_ milliseconds: UInt64) {
    now = now.advanced(byMilliseconds: milliseconds)
    wallMilliseconds += Int64(milliseconds)
  }
}

/// The sidecar of a store, in memory.
final class BenchMark: ReplicaMark {
  struct Saved: Equatable {
    let replica: Incarnation?
    let reached: UInt64
    var resting: [RestingReplica] = []
  }

  struct Failure: Error {}

  var saved: Saved?
  var discards = 0
  /// What the mark says against the store.
  var causes: [RenewalCause] = []
  var isBroken = false

  func causes(_ store: RenewalEvidence.Store) throws -> [RenewalCause] {
    // One that was taken away vouches for no store.
    discards > 0 && saved == nil ? causes + [.storeID] : causes
  }

  func save(store: UUIDValue, replica: Incarnation?, resting: [RestingReplica], reached: UInt64) throws {
    if isBroken { throw Failure() }
    saved = Saved(replica: replica, reached: reached, resting: resting)
  }

  func resting(beside replica: Incarnation) throws -> [RestingReplica] {
    saved?.replica == replica ? saved?.resting ?? [] : []
  }

  func discard() throws {
    if isBroken { throw Failure() }
    (saved, discards) = (nil, discards + 1)
  }
}

final class BenchJournal: EngineJournal {
  private(set) var lines: [(level: LogLevel, message: String, facts: [String: String])] = []
  func note(_ level: LogLevel, _ message: String, _ facts: KeyValuePairs<String, JournalFact>) {
    let texts = facts.compactMap { key, fact in if case .text(let text) = fact { (key, text) } else { nil } }
    lines.append((level, message, Dictionary(texts) { first, _ in first }))
  }
  func says(_ part: String) -> Bool { lines.contains { $0.message.contains(part) } }
}

/// Keeps all records of commits.
final class BenchFeed: CommitListener {
  private let trace: TraceBook
  private(set) var records: [CommitRecord] = []

  init(_ trace: TraceBook) { self.trace = trace }

  func committed(_ record: CommitRecord) {
    trace.note(.told)
    records.append(record)
  }
}

/// Connections whose other ends are engines of the same bench.
final class BenchLinks: EngineLinks {
  private let trace: TraceBook
  /// Takes a frame; nil where the session leads nowhere.
  var deliver: (([UInt8], SessionID) -> Void)?
  var hangUp: ((SessionID) -> Void)?
  /// Every message that was sent, in order.
  private(set) var sent: [Message] = []
  private(set) var dials: [(address: PeerAddress, tag: UInt64)] = []
  private(set) var authenticated: [SessionID] = []
  private(set) var released = 0
  private(set) var adoptions = 0
  private(set) var strandings = 0
  /// What links let pass; the inner nil: nothing.
  var passage: Passage? = .everything
  var passages: [SessionID: Passage?] = [:]
  private(set) var keptShort: [SessionID] = []
  /// Sessions whose transport takes nothing for now.
  var full: Set<SessionID> = []
  /// Sessions from which nothing is read for now.
  private(set) var heldUp: Set<SessionID> = []
  /// What is said to wait in the queue of a session.
  var queuedByteCount = 0
  /// What should wait at the most.
  var queueByteMark = Int.max
  /// Bytes that were sent and wait still, until a test says that they do not.
  var waitingByteCount = 0
  /// The same for single sessions.
  var queuedByteCounts: [SessionID: Int] = [:]

  init(_ trace: TraceBook) { self.trace = trace }

  func send(_ frame: [UInt8], on session: SessionID) -> LinkSending {
    guard !full.contains(session) else { return .full }
    trace.note(.sent(session, BenchLinks.kind(frame)))
    if let message = try? MessageCodec.decode(frame[...]) { sent.append(message) }
    deliver?(frame, session)
    waitingByteCount += frame.count
    return .queued(isLong: max(queuedByteCount, waitingByteCount) > queueByteMark)
  }

  func clearSent() { sent = [] }

  static func kind(_ frame: [UInt8]) -> String {
    guard let message = try? MessageCodec.decode(frame[...]) else { return "?" }
    return String("\(message)".prefix { $0 != "(" })
  }

  func close(_ session: SessionID, afterFlush: Bool) {
    trace.note(.closed(session))
    hangUp?(session)
  }

  func authenticate(_ session: SessionID) { authenticated.append(session) }
  func dial(_ address: PeerAddress, tag: UInt64) { dials.append((address, tag)) }
  func release(_ session: SessionID, byteCount: Int) { released += byteCount }
  func queuedByteCount(of session: SessionID) -> Int { queuedByteCounts[session] ?? queuedByteCount }
  func queueByteMark(of session: SessionID) -> Int { queueByteMark }
  func holdUp(_ session: SessionID) { heldUp.insert(session) }
  func letGo(_ session: SessionID) { heldUp.remove(session) }
  func adopt(_ authority: Authority) { adoptions += 1 }
  func passage(of session: SessionID) -> Passage? { passages[session] ?? passage }
  func keepShort(_ session: SessionID) { keptShort.append(session) }
  func closeStranded() { strandings += 1 }
  func text(of address: SocketAddress) -> String { "port \(address.port)" }
  var frameOverheadByteCount: Int { 4 }
}
