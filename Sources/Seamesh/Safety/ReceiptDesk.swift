import Engine
import Glibc
import Identity
import Replication
import Storage
import Synchronization
import Transport

/// Who holds a document, or a partition, by what is known here, or by what those in reach answer.
struct ReceiptDesk: Sendable {
  fileprivate let documents: DocumentReader
  private let feed: CommitFeed
  private var engine: EngineLine { documents.engine }

  init(_ documents: DocumentReader, _ feed: CommitFeed) { (self.documents, self.feed) = (documents, feed) }

  func receipts(
    _ partition: PartitionName, _ collection: Text, id: Value, asking: Bool
  ) throws(NodeError) -> ReceiptReport {
    try documents.checkMayShow(partition)
    guard let state = try documents.state(of: collection, id: id, in: partition) else {
      throw NodeError(.notFound, "there is no such document in \(partition.text.string)")
    }
    var asked: [ReplicaID: UInt64] = [:]
    for entry in state.entries { asked[entry.dot.replica] = max(asked[entry.dot.replica] ?? 0, entry.dot.sequence) }
    // What ends a document leaves no entry.
    let changes = state.isAlive && !asked.isEmpty ? asked : nil
    var report = try receipts(partition, for: changes, asking: asking)
    (report.collection, report.id) = (collection.string, id)
    report.isOfWholePartition = changes == nil
    return report
  }

  func receipts(_ partition: PartitionName, asking: Bool) throws(NodeError) -> ReceiptReport {
    try documents.checkMayCarry(partition)
    return try receipts(partition, for: nil, asking: asking)
  }

  /// `asked`: nil for all that counts.
  private func receipts(
    _ partition: PartitionName, for asked: [ReplicaID: UInt64]?, asking: Bool
  ) throws(NodeError) -> ReceiptReport {
    guard asking else { return try report(partition, asked) }
    let hearers = try hearers(of: partition)
    try ask(partition)
    let deadline = ElapsedClock.now().advanced(byMilliseconds: ReadLimits.receiptMilliseconds)
    while true {
      let report = try report(partition, asked)
      let isDone = hearers.allSatisfy(report.isHeld) || ElapsedClock.now() >= deadline
      guard !isDone else { return report }
      usleep(ReadLimits.receiptPauseMicroseconds)
    }
  }

  fileprivate func ask(_ partition: PartitionName) throws(NodeError) {
    try engine.ask { $0.askForHoldings(of: [partition]) }
  }

  /// Who would hear a question of it now.
  fileprivate func hearers(of partition: PartitionName) throws(NodeError) -> [String] {
    try engine.ask { engine in
      engine.state.mesh.hearers(of: engine.state.identity.id(of: partition)).map { DeviceID($0).text }
    }
  }

  /// - Parameter owner: goes on as long as the receipt is followed.
  func watch(
    _ place: ReceiptPlace, asking: Bool, for owner: any AnyObject & Sendable
  ) throws(NodeError) -> any ReceiptSubscription {
    guard let follower = feed.follow() else {
      throw NodeError(.busy, "there are \(feed.limit) live results already: close one first")
    }
    return LiveReceipt(self, feed, place, isAsking: asking, follower, for: owner)
  }

  private func report(
    _ partition: PartitionName, _ asked: [ReplicaID: UInt64]?
  ) throws(NodeError) -> ReceiptReport {
    guard let report = try engine.ask({ $0.receiptReport(partition, asked) }) else {
      throw NodeError(.notFound, "nothing of \(partition.text.string) is here; seamesh partitions shows what is")
    }
    return report
  }
}

/// A receipt that follows the commits. Used by one thread at a time.
private final class LiveReceipt: ReceiptSubscription {
  private struct State {
    var shown: ReceiptReport?
    /// Nil: never.
    var askedAt: MonotonicTime?
  }

  private let desk: ReceiptDesk
  private let owner: any AnyObject & Sendable
  private let feed: CommitFeed
  private let place: ReceiptPlace
  private let partition: PartitionID
  private let isAsking: Bool
  private let follower: FeedFollower
  private let state = Mutex(State())

  init(
    _ desk: ReceiptDesk, _ feed: CommitFeed, _ place: ReceiptPlace, isAsking: Bool, _ follower: FeedFollower,
    for owner: any AnyObject & Sendable
  ) {
    (self.desk, self.feed, self.follower, self.owner) = (desk, feed, follower, owner)
    (self.place, self.isAsking) = (place, isAsking)
    partition = desk.documents.id(of: place.partition)
  }

  func cancel() { feed.remove(follower) }

  deinit { feed.remove(follower) }

  func next(timeoutMilliseconds: Int) throws(NodeError) -> ReceiptReport? {
    if let shown = state.withLock(\.shown) {
      try askIfDue(shown)
      switch follower.waitForSafety(of: partition, timeoutMilliseconds: timeoutMilliseconds) {
      case .nothing: return nil
      case .stopped: throw NodeError(.stopping, "the node is stopping")
      case .moved: break
      }
    }
    let report = try report()
    let isNews = state.withLock { state in
      defer { state.shown = report.ageless }
      return state.shown != report.ageless
    }
    return isNews ? report : nil
  }

  private func report() throws(NodeError) -> ReceiptReport {
    guard let document = place.document else { return try desk.receipts(place.partition, asking: false) }
    return try desk.receipts(place.partition, document.collection, id: document.id, asking: false)
  }

  private func askIfDue(_ shown: ReceiptReport) throws(NodeError) {
    let now = ElapsedClock.now()
    let isDue = state.withLock { state in
      state.askedAt.map { now.millisecondsSince($0) >= ReadLimits.receiptAskMilliseconds } ?? true
    }
    guard isAsking, isDue, try !desk.hearers(of: place.partition).allSatisfy(shown.isHeld) else { return }
    state.withLock { $0.askedAt = now }
    try desk.ask(place.partition)
  }
}

extension NodeEngine {
  /// Nil where the partition is not here.
  fileprivate func receiptReport(_ name: PartitionName, _ asked: [ReplicaID: UInt64]?) -> ReceiptReport? {
    let partition = state.identity.id(of: name)
    guard let log = state.mesh.partitions[partition]?.log else { return nil }
    let asked = asked ?? log.accepted.entries.mapValues(\.sequence)
    let tips = StoredTips(self, partition)
    let receipts = state.mesh.ledger.receipts(of: partition, for: asked, in: state.mesh.holdings.book) {
      tips.tip($0, $1)
    }
    var report = ReceiptReport()
    report.partition = name.text.string
    report.changes = asked.sorted { $0.key < $1.key }.map {
      ReceiptReport.Change(replica: $0.key.text, sequence: $0.value)
    }
    report.words = receipts.map(word)
    return report
  }

  private func word(_ receipt: Receipt) -> ReceiptReport.Word {
    var word = ReceiptReport.Word()
    let device = receipt.holdings.device
    let membership = state.mesh.authority.member(of: device)?.membership
    word.device = DeviceID(device).text
    word.label = membership?.label.string ?? ""
    word.user = membership?.user.string ?? ""
    // Whether it is a relay is what a receipt is read for.
    let roles = state.mesh.authority.roles(of: device)
    word.role = (roles.contains("relay") ? "relay" : roles.first)?.string ?? ""
    word.isSelf = device == state.identity.device
    word.isOfBackend = receipt.holdings.kind == .backend
    word.lacking = receipt.lacking
    word.standing = receipt.standing
    word.ageMilliseconds = receipt.age(at: state.clock.wallMilliseconds)
    return word
  }
}
