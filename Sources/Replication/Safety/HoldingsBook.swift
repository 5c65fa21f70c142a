/// The records that a node keeps: of each partition, device and kind the one with the greatest number. All of them are
/// durable.
package struct HoldingsBook: Sendable {
  /// What leads from the record before to the present one.
  struct Step: Sendable {
    let base: UInt64
    let entries: ContextForm
  }

  struct Entry: Sendable {
    let kept: KeptHoldings
    /// Nil where the record before is not known, or the whole is shorter.
    let step: Step?
    /// When its speaker said it here; nil: before this start, or somebody else passed it on.
    let heardAt: MonotonicTime?
  }

  struct Page: Sendable {
    let name: PartitionName
    var entries: [Holdings.Subject: Entry] = [:]
    /// The book's revision when it changed last.
    var revision: UInt64 = 0
    var sum: UInt64?
  }

  private(set) var pages: [PartitionID: Page] = [:]
  /// Counts changes.
  private(set) var revision: UInt64 = 0
  /// By the clocks of when they were heard; of records that others have taken the place of, too.
  private(set) var latestHeard = Int64.min
  /// When those of before this start were put in.
  private(set) var restoredAt: MonotonicTime?
  /// How much each device has in it.
  private var shares: [PublicKey: Share] = [:]
  private var total = Share()

  struct Share: Sendable {
    var records = 0
    var entries = 0
  }

  /// Records of one device and of all; entries of their vectors together, each some hundred bytes in memory.
  package static let deviceLimit = 8_192
  package static let limit = 65_536
  package static let deviceEntryLimit = 131_072
  package static let entryLimit = 1_048_576

  package init() {}

  package subscript(partition: PartitionID, subject: Holdings.Subject) -> KeptHoldings? {
    pages[partition]?.entries[subject]?.kept
  }

  package func records(of partition: PartitionID) -> [KeptHoldings] {
    (pages[partition]?.entries ?? [:]).sorted { $0.key < $1.key }.map(\.value.kept)
  }

  /// When its speaker said it here; nil where that was before this start, or somebody else passed it on.
  func heardAt(_ partition: PartitionID, _ subject: Holdings.Subject) -> MonotonicTime? {
    pages[partition]?.entries[subject]?.heardAt
  }

  mutating func noteRestored(_ now: MonotonicTime) { restoredAt = now }

  package var partitions: some Collection<PartitionID> { pages.keys }
  package var count: Int { total.records }

  func number(_ partition: PartitionID, _ subject: Holdings.Subject) -> UInt64 {
    pages[partition]?.entries[subject]?.kept.holdings.number ?? 0
  }

  func numbers(of partition: PartitionID) -> [Holdings.Subject: UInt64] {
    (pages[partition]?.entries ?? [:]).mapValues(\.kept.holdings.number)
  }

  /// Is there room for the record? One that takes another's place finds the other's.
  func admits(_ holdings: Holdings, in partition: PartitionID) -> Bool {
    let old = self[partition, holdings.subject]
    let (records, entries) = (old == nil ? 1 : 0, holdings.vector.count - (old?.holdings.vector.count ?? 0))
    let share = shares[holdings.device] ?? Share()
    return share.records + records <= HoldingsBook.deviceLimit && total.records + records <= HoldingsBook.limit
      && share.entries + entries <= HoldingsBook.deviceEntryLimit && total.entries + entries <= HoldingsBook.entryLimit
  }

  /// False where another stands already, or there is no room.
  mutating func put(
    _ kept: KeptHoldings, in partition: PartitionID, heardAt: MonotonicTime? = nil,
    precedes: (Holdings, Holdings) -> Bool
  ) -> Bool {
    let holdings = kept.holdings
    let old = self[partition, holdings.subject]
    guard admits(holdings, in: partition), old.map({ precedes($0.holdings, holdings) }) ?? true else { return false }
    var step: Step?
    if let old, case let form = ContextForm.shorter(holdings.vector, base: old.holdings.vector), case .increments = form
    {
      step = Step(base: old.holdings.number, entries: form)
    }
    revision += 1
    latestHeard = max(latestHeard, kept.heard)
    pages[partition, default: Page(name: holdings.partition)].entries[holdings.subject] = Entry(
      kept: kept, step: step, heardAt: heardAt)
    pages[partition]?.revision = revision
    pages[partition]?.sum = nil
    count(holdings, 1)
    if let old { count(old.holdings, -1) }
    return true
  }

  private mutating func count(_ holdings: Holdings, _ sign: Int) {
    shares[holdings.device, default: Share()].records += sign
    shares[holdings.device]?.entries += sign * holdings.vector.count
    total.records += sign
    total.entries += sign * holdings.vector.count
  }

  /// Stands for who says something of the partition, and under which number.
  mutating func sum(of partition: PartitionID, _ hash: HashFunction) -> UInt64 {
    guard let page = pages[partition] else { return 0 }
    if let sum = page.sum { return sum }
    let sum = HoldingsBook.sum(of: partition, page.entries.mapValues(\.kept.holdings.number), hash)
    pages[partition]?.sum = sum
    return sum
  }

  package static func sum(
    of partition: PartitionID, _ numbers: [Holdings.Subject: UInt64], _ hash: HashFunction
  ) -> UInt64 {
    var input = DomainTag.heldSum.bytes
    partition.digest.append(to: &input)
    for (subject, number) in numbers.sorted(by: { $0.key < $1.key }) {
      subject.device.raw.append(to: &input)
      appendBigEndian(subject.kind.rawValue, to: &input)
      appendBigEndian(number, to: &input)
    }
    return Digest.of(input, hash).words.0
  }
}
