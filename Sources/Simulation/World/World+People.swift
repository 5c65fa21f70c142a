import Engine
import Replication

extension World {
  static let checkInterval: UInt64 = 500
  /// Nothing may move any more for so long after all agree.
  static let settlingMilliseconds: UInt64 = 3_000

  /// Somebody does something somewhere.
  func act() {
    guard isTroubled else { return }
    queue.put(.act, at: clock + random.between(1...plan.actionInterval * 2))
    guard let process = random.pick(nodes.compactMap(\.process)) else { return }
    switch random.below(100) {
    case 0..<4:
      guard let name = random.pick(plan.partitions) else { return }
      process.subscribe(random.chance(70) ? name.text : random.chance(50) ? "al*" : "*", isWanted: true)
      count(.subscribed)
    case 4..<7:
      guard let pattern = random.pick(process.engine.state.subscriptions.sorted()) else { return }
      process.subscribe(pattern, isWanted: false)
      count(.unsubscribed)
    default:
      for _ in 0..<(random.chance(20) ? random.between(2...20) : 1) { write(process) }
    }
  }

  private func write(_ process: NodeProcess) {
    guard let name = random.pick(plan.partitions) else { return }
    nextJob += 1
    var ids = (0..<plan.documents).map { Value.int(Int64($0)) }
    ids.shuffle(using: &random)
    let isLarge = mayCause(.largePayload) && random.chance(10)
    if isLarge { count(.largePayload) }
    let edits = ids.prefix(random.chance(70) ? 1 : random.between(1...3)).map {
      AuthoredEdit(id: $0, seed: random.next(), writesLargeValues: isLarge)
    }
    process.write(WriteJob(number: nextJob, partition: name, edits: edits))
  }

  func checkAgreement() {
    if let difference = oracle.disagreement() {
      agreedSince = nil
      if clock > options.troubledMilliseconds + agreementLimit {
        return violate("I14", "no agreement \(agreementLimit) ms after the last fault: \(difference)")
      }
    } else if agreedSince == nil {
      agreedSince = clock
      report.convergenceMilliseconds = clock - options.troubledMilliseconds
    }
    queue.put(.check, at: clock + World.checkInterval)
  }

  /// Until a dead connection is noticed, a new one made, and summaries compared a few times, over as many hops as there are.
  private var agreementLimit: UInt64 {
    plan.mesh.deadMilliseconds + plan.mesh.handshakeMilliseconds
      + UInt64(nodes.count) * (plan.mesh.antiEntropyMilliseconds * 5 / 4 + plan.mesh.catchUpSilenceMilliseconds)
  }
}
