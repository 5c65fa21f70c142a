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
      process.put(.subscribe(random.chance(70) ? name.text : random.chance(50) ? "al*" : "*"))
    case 4..<7:
      guard let pattern = random.pick(process.node.disk.image.subscriptions.sorted()) else { return }
      process.put(.unsubscribe(pattern))
    default:
      for _ in 0..<(random.chance(20) ? random.between(2...20) : 1) { write(process) }
    }
  }

  private func write(_ process: NodeProcess) {
    guard let name = random.pick(plan.partitions) else { return }
    nextJob += 1
    let count = random.chance(70) ? 1 : random.between(1...3)
    process.put(.write(WriteJob(number: nextJob, partition: name, documents: count, seed: random.next())))
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
