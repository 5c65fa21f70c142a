import Engine
import Glibc
import Identity
import Replication
import Storage
import Transport

extension Node {
  package func receipts(
    _ partition: PartitionName, _ collection: Text, id: Value, asking: Bool
  ) throws(NodeError) -> ReceiptReport {
    try checkMayShow(partition)
    guard let state = try state(of: collection, id: id, in: partition) else {
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

  package func receipts(_ partition: PartitionName, asking: Bool) throws(NodeError) -> ReceiptReport {
    guard try may(.carry, in: partition) else {
      throw NodeError(.notPermitted, "this device may not carry \(partition.text.string)")
    }
    return try receipts(partition, for: nil, asking: asking)
  }

  /// `asked`: nil for all that counts.
  private func receipts(
    _ partition: PartitionName, for asked: [ReplicaID: UInt64]?, asking: Bool
  ) throws(NodeError) -> ReceiptReport {
    guard asking else { return try report(partition, asked) }
    let hearers = try onEngine { engine in
      engine.askForHoldings(of: [partition])
      return engine.state.mesh.hearers(of: engine.state.identity.id(of: partition)).map { DeviceID($0).text }
    }
    let deadline = ElapsedClock.now() + ReadLimits.receiptMilliseconds
    while true {
      let report = try report(partition, asked)
      let told = Set(report.words.filter { !$0.isOfBackend && $0.lacking == 0 }.map(\.device))
      let isDone = hearers.allSatisfy(told.contains) || ElapsedClock.now() >= deadline
      guard !isDone else { return report }
      usleep(ReadLimits.receiptPauseMicroseconds)
    }
  }

  private func report(
    _ partition: PartitionName, _ asked: [ReplicaID: UInt64]?
  ) throws(NodeError) -> ReceiptReport {
    guard let report = try onEngine({ $0.receiptReport(partition, asked) }) else {
      throw NodeError(.notFound, "nothing of \(partition.text.string) is here; seamesh partitions shows what is")
    }
    return report
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
    word.role = membership?.role.string ?? ""
    word.isSelf = device == state.identity.device
    word.isOfBackend = receipt.holdings.kind == .backend
    word.lacking = receipt.lacking
    word.standing = receipt.standing
    word.ageMilliseconds = receipt.age(at: state.clock.wallMilliseconds)
    return word
  }
}
