import Synchronization

/// What devices may do in partitions, as it was found under one set of statements: asked for with each run and each peer,
/// it follows from nothing else.
final class LevelMemo: Sendable {
  /// About a MiB. All are forgotten where one more would be too many.
  static let limit = 16_384

  private struct Question: Hashable {
    let device: PublicKey
    let partition: PartitionName
  }

  private let known = Mutex<[Question: AccessLevel]>([:])

  var count: Int { known.withLock { $0.count } }

  func level(of device: PublicKey, in partition: PartitionName, _ find: () -> AccessLevel) -> AccessLevel {
    let question = Question(device: device, partition: partition)
    if let level = known.withLock({ $0[question] }) { return level }
    let level = find()
    known.withLock { known in
      if known.count >= LevelMemo.limit { known.removeAll() }
      known[question] = level
    }
    return level
  }
}
