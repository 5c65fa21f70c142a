import Replication

/// Who broke which rule of the protocol, each once with a count. For `doctor`, and for a log that no peer can fill.
///
/// Bounded: what happened longest ago gives way.
package struct ConductBook {
  /// A member by its device; a stranger by where it came from, since its key is as new as it likes.
  package enum Source: Hashable, Sendable {
    case device(DeviceID, user: Text)
    case address(String)
  }

  package struct Entry: Sendable {
    package let source: Source
    package let reason: String
    /// Of the last time.
    package fileprivate(set) var place: BrokenRule.Place?
    package fileprivate(set) var count = 0
    package fileprivate(set) var lastMilliseconds: Int64 = 0
    fileprivate var lastAt = MonotonicTime(milliseconds: 0)
    fileprivate var toldAt: MonotonicTime?
    fileprivate var toldCount = 0
  }

  private struct Key: Hashable {
    let source: Source
    let reason: String
  }

  /// Sources and reasons that are remembered.
  static let limit = 256
  /// The same again from the same source is written to the log once in so long, with how often it was.
  static let tellMilliseconds: UInt64 = 60_000

  private var book: [Key: Entry] = [:]

  /// The latest first.
  package var entries: [Entry] { book.values.sorted { ($1.lastAt, $0.reason) < ($0.lastAt, $1.reason) } }

  /// Answers how often it happened since it was last told of, where it is to be told of now.
  mutating func note(
    _ source: Source, _ reason: String, at place: BrokenRule.Place? = nil, _ clock: any EngineClock
  ) -> Int? {
    let (key, now) = (Key(source: source, reason: reason), clock.now)
    if book[key] == nil, book.count >= ConductBook.limit,
      let oldest = book.min(by: { ($0.value.lastAt, $0.value.reason) < ($1.value.lastAt, $1.value.reason) })
    {
      book[oldest.key] = nil
    }
    var entry = book[key] ?? Entry(source: source, reason: reason)
    entry.count += 1
    (entry.lastMilliseconds, entry.lastAt, entry.place) = (clock.wallMilliseconds, now, place ?? entry.place)
    defer { book[key] = entry }
    if let told = entry.toldAt, now.millisecondsSince(told) < ConductBook.tellMilliseconds { return nil }
    defer { (entry.toldAt, entry.toldCount) = (now, entry.count) }
    return entry.count - entry.toldCount
  }
}
