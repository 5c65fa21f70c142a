import Replication

/// Documents whose rows do not read and that the log could not give again, by partition. They answer nobody, and can be
/// written whole; everything else goes on.
package struct Quarantine: Sendable {
  package struct Entry: Sendable {
    package let reason: String
    /// When the log was last asked for it.
    fileprivate var tried: MonotonicTime?
  }

  package private(set) var entries: [PartitionID: [DocumentKey: Entry]] = [:]
  package private(set) var count = 0
  /// Documents that were made anew since the start, in words; the first few.
  package private(set) var mended: [String] = []
  package private(set) var mendedCount = 0
  private static let toldLimit = 16

  /// What is beyond is found damaged again whenever it is met.
  package static let limit = 1_024
  /// A walk through the log of a partition: not for each read of a document that it does not have.
  package static let retryMilliseconds: UInt64 = 60_000

  package func holds(_ key: DocumentKey, in partition: PartitionID) -> Bool { entries[partition]?[key] != nil }

  /// Those that the log was not asked for just now.
  func due(_ keys: Set<DocumentKey>, in partition: PartitionID, _ now: MonotonicTime) -> Set<DocumentKey> {
    keys.filter { key in
      entries[partition]?[key]?.tried.map { now.millisecondsSince($0) >= Quarantine.retryMilliseconds } ?? true
    }
  }

  /// The log has what it had not: those of the partition are asked of it anew. Answers them.
  mutating func makeDue(in partition: PartitionID) -> Set<DocumentKey> {
    let keys = Set(entries[partition]?.keys.map { $0 } ?? [])
    for key in keys { entries[partition]?[key]?.tried = nil }
    return keys
  }

  mutating func put(_ key: DocumentKey, in partition: PartitionID, _ reason: String, _ now: MonotonicTime) {
    let isKnown = holds(key, in: partition)
    guard isKnown || count < Quarantine.limit else { return }
    entries[partition, default: [:]][key] = Entry(reason: reason, tried: now)
    if !isKnown { count += 1 }
  }

  /// The log was asked for it, and the store did not take what it gave.
  mutating func noteTried(_ key: DocumentKey, in partition: PartitionID, _ reason: String, _ now: MonotonicTime) {
    put(key, in: partition, entries[partition]?[key]?.reason ?? reason, now)
  }

  /// The log is asked for it with the next occasion.
  mutating func putUntried(_ key: DocumentKey, in partition: PartitionID, _ reason: String) {
    guard !holds(key, in: partition), count < Quarantine.limit else { return }
    entries[partition, default: [:]][key] = Entry(reason: reason, tried: nil)
    count += 1
  }

  mutating func noteMended(_ key: DocumentKey, in partition: PartitionName) {
    mendedCount += 1
    guard mended.count < Quarantine.toldLimit else { return }
    let id = DamagedDocument.text(of: Value(canonicalID: key.id) ?? .bytes(key.id))
    mended.append("\(id) of \(key.collection.string) in \(partition.text.string)")
  }

  /// Answers whether it was there.
  @discardableResult
  mutating func release(_ key: DocumentKey, in partition: PartitionID) -> Bool {
    guard count > 0, entries[partition]?.removeValue(forKey: key) != nil else { return false }
    count -= 1
    if entries[partition]?.isEmpty == true { entries[partition] = nil }
    return true
  }
}
