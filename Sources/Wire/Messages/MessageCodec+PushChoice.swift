import Replication

extension CBORWriter {
  mutating func pushChoice(_ choice: PushChoice) {
    message(.pushChoice, items: 4)
    text(choice.name.text)
    for list in [choice.eager, choice.lazy, choice.released] {
      arrayHeader(list.count)
      for replica in list.sorted() { self.replica(replica) }
    }
  }
}

extension CBORReader {
  mutating func pushChoice(_ items: Int) throws(CBORError) -> PushChoice {
    try expect(items, 4)
    let start = offset
    let choice = PushChoice(
      try partitionName(), eager: try chains(), lazy: try chains(), released: try chains())
    guard choice.isSound else { throw CBORError(.outOfRange, at: start) }
    return choice
  }

  /// Ascending.
  private mutating func chains() throws(CBORError) -> Set<ReplicaID> {
    var last: ReplicaID?
    return Set(
      try list(limit: PushChoice.limit) { reader throws(CBORError) in
        let start = reader.offset
        let replica = try reader.readReplica()
        guard last.map({ $0 < replica }) ?? true else { throw CBORError(.keyOrder, at: start) }
        last = replica
        return replica
      })
  }
}
