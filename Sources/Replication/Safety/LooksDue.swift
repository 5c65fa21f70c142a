/// Partitions in which something of this device is unspoken, each with the time at which it is looked at whether a word is
/// worth its bytes. There may be ten thousand of which none is for hours: a tick looks at what may be due.
struct LooksDue: Sendable {
  /// What may make a word due, beside growth and questions.
  struct Next: Sendable {
    var time: MonotonicTime?
    /// Nobody would be told now.
    var awaitsHearer = false

    static let nothing = Next()
    static let whenHeard = Next(awaitsHearer: true)
    static func at(_ time: MonotonicTime) -> Next { Next(time: time) }

    func sooner(_ other: Next) -> Next {
      Next(time: [time, other.time].compactMap { $0 }.min(), awaitsHearer: awaitsHearer || other.awaitsHearer)
    }
  }

  private struct Later: Sendable {
    let name: PartitionName
    let next: Next
  }

  private var soon: [PartitionID: PartitionName] = [:]
  private var later: [PartitionID: Later] = [:]
  /// No later than the first of them.
  private var earliest: MonotonicTime?

  /// Those that wait, at the next tick or later.
  var count: Int { soon.count + later.count }

  /// At the next tick.
  mutating func add(_ partition: PartitionID, _ name: PartitionName) {
    later[partition] = nil
    soon[partition] = name
  }

  mutating func put(_ partition: PartitionID, _ name: PartitionName, _ next: Next) {
    guard soon[partition] == nil, next.time != nil || next.awaitsHearer else { return }
    later[partition] = Later(name: name, next: next)
    if let time = next.time { earliest = min(time, earliest ?? time) }
  }

  /// Somebody may hear now what nobody would have.
  mutating func addUnheard() {
    for (partition, entry) in later where entry.next.awaitsHearer { add(partition, entry.name) }
  }

  /// Ascending by partition.
  mutating func takeDue(_ now: MonotonicTime) -> [(partition: PartitionID, name: PartitionName)] {
    if let earliest, earliest <= now { addDue(now) }
    guard !soon.isEmpty else { return [] }
    defer { soon = [:] }
    return soon.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private mutating func addDue(_ now: MonotonicTime) {
    earliest = nil
    for (partition, entry) in later {
      guard let time = entry.next.time else { continue }
      if time <= now { add(partition, entry.name) } else { earliest = min(time, earliest ?? time) }
    }
  }
}
