import Testing

@testable import Replication

@Suite("What is kept of who pushes what, at who chose and at who was told")
struct PushChoiceBookTests {
  @Test("who goes on to push what he was told not to hears that every two seconds, however often he pushes it")
  func toldAgainAndAgain() {
    var bringers = EagerBringers()
    let (partition, replica) = (PartitionID(.zero), ReplicaID(high: 1, low: 1))
    let (first, second) = (SessionID(rawValue: 7), SessionID(rawValue: 8))
    bringers.noteNew(replica, of: partition, from: first, at: MonotonicTime(milliseconds: 0))
    var told: [UInt64] = []
    for milliseconds in stride(from: UInt64(0), through: 5_000, by: 500) {
      let time = MonotonicTime(milliseconds: milliseconds)
      bringers.choose(first, for: replica, of: partition, ratherThan: [second], at: time)
      if bringers.takeUntold(time).contains(where: { $0.session == second }) { told.append(milliseconds) }
    }
    #expect(told == [0, 2_000, 4_000])
  }

  @Test("who is asked to push what stands still is chosen when he has brought something, and not by his word")
  func grafted() {
    var bringers = EagerBringers()
    let (partition, replica) = (PartitionID(.zero), ReplicaID(high: 1, low: 1))
    let sessions = (0..<3).map { SessionID(rawValue: $0) }
    let time = MonotonicTime(milliseconds: 1_000)
    func chosen() -> SessionID? { bringers[replica, partition]?.eager }
    bringers.noteNew(replica, of: partition, from: sessions[0], at: time)
    bringers.choose(sessions[0], for: replica, of: partition, ratherThan: [sessions[1], sessions[2]], at: time)
    func told() -> [SessionID] { bringers.takeUntold(time).map(\.session) }
    #expect(told() == sessions)
    bringers.graft(sessions[1], to: replica, of: partition, at: time)
    #expect(chosen() == sessions[0] && told() == [sessions[1]])
    bringers.noteNew(replica, of: partition, from: sessions[2], at: time)
    #expect(chosen() == sessions[0])
    bringers.noteNew(replica, of: partition, from: sessions[1], at: time)
    #expect(chosen() == sessions[1] && told() == [], "he has been told")
  }

  @Test("who was chosen is chosen no more once others bring what he did not, and by nobody's word")
  func doubted() {
    let (partition, replica) = (PartitionID(.zero), ReplicaID(high: 1, low: 1))
    let sessions = (0..<4).map { SessionID(rawValue: $0) }
    let time = MonotonicTime(milliseconds: 1_000)
    var bringers = EagerBringers()
    func chosen() -> SessionID? { bringers[replica, partition]?.eager }
    func told() -> [SessionID] { bringers.takeUntold(time).map(\.session) }
    func bring(_ number: Int) { bringers.noteNew(replica, of: partition, from: sessions[number], at: time) }
    bring(0)
    bringers.choose(sessions[0], for: replica, of: partition, ratherThan: [sessions[1]], at: time)
    #expect(told() == [sessions[0], sessions[1]])
    bringers.release([sessions[2]], from: replica, of: partition, at: time)
    #expect(told() == [sessions[2]] && chosen() == sessions[0])
    bring(0)
    bring(3)
    #expect(told() == [] && chosen() == sessions[0], "he has brought what was missed")
    bringers.release([sessions[2]], from: replica, of: partition, at: time)
    #expect(told() == [sessions[2]])
    bring(2)
    #expect(told() == [sessions[0], sessions[1]] && chosen() == nil)
    bringers.choose(sessions[0], for: replica, of: partition, ratherThan: [sessions[1], sessions[2]], at: time)
    #expect(told() == Array(sessions[0...2]))
    bringers.release([sessions[0]], from: replica, of: partition, at: time)
    #expect(told() == Array(sessions[0...2]) && chosen() == nil, "nobody is to leave to others what nobody is to push")
  }

  @Test("of more chains of a partition, and of more partitions, than are kept nothing is kept")
  func bounds() throws {
    var choices = PushChoices()
    let name = try PartitionName("a=b")
    func chains(_ range: Range<UInt64>) -> Set<ReplicaID> { Set(range.map { ReplicaID(high: 1, low: $0) }) }
    let partition = PartitionID(.zero)
    let first = choices.hear(PushChoice(name, eager: chains(0..<256)), of: partition) { _ in true }
    #expect(first.count == 256)
    let beyond = choices.hear(PushChoice(name, eager: chains(256..<300)), of: partition) { _ in true }
    #expect(beyond.isEmpty)
    let instead = PushChoice(name, eager: chains(256..<300), released: chains(0..<10))
    let freed = choices.hear(instead, of: partition) { _ in true }
    #expect(Set(freed) == chains(0..<10).union(chains(256..<266)))
    #expect(!choices.isEager(ReplicaID(high: 1, low: 9), in: partition))
    for number in 1..<UInt64(PushChoices.partitionLimit) + 10 {
      let other = PartitionID(Digest(words: (number, 0, 0, 0)))
      let kept = choices.hear(PushChoice(name, lazy: chains(0..<1)), of: other) { _ in true }
      let isLazy = choices.isLazy(ReplicaID(high: 1, low: 0), in: other)
      #expect(kept.isEmpty && isLazy == (number < PushChoices.partitionLimit))
    }
  }

  @Test("of as many chains as are kept each may still come to be wanted from another one")
  func fullBookTurns() throws {
    var choices = PushChoices()
    let (name, partition) = (try PartitionName("a=b"), PartitionID(.zero))
    let chains = Set((0..<UInt64(PushChoice.limit)).map { ReplicaID(high: 1, low: $0) })
    _ = choices.hear(PushChoice(name, lazy: chains), of: partition) { _ in true }
    let pushed = choices.hear(PushChoice(name, eager: chains), of: partition) { _ in true }
    #expect(Set(pushed) == chains)
    #expect(chains.allSatisfy { choices.isEager($0, in: partition) && !choices.isLazy($0, in: partition) })
  }
}
