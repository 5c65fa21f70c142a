import TestSupport
import Testing

@testable import Replication

@Suite("Chains: those of a partition")
struct ChainTableTests {
  private func replica(_ number: UInt64) -> ReplicaID { ReplicaID(high: number % 3, low: number) }

  private func chain(_ sequence: UInt64) -> Chain {
    let hash = Digest(words: (sequence, 0, 0, 0))
    return Chain(trunk: ChainTrunk(sequence: sequence, hash: hash, documents: .any), limits: .open)
  }

  @Test("what is set, taken out and set again in any order is found as in a dictionary, ascending")
  func model() {
    var random = SplitMix64(seed: 5)
    for _ in 0..<50 {
      var (table, model) = (ChainTable(), [ReplicaID: UInt64]())
      for step in 1...100 as ClosedRange<UInt64> {
        let replica = replica(random.next() % 24)
        switch random.next() % 4 {
        case 0, 1: (table[replica], model[replica]) = (chain(step), step)
        case 2: (table[replica], model[replica]) = (nil, nil)
        default:
          #expect(table.take(replica)?.trunk.sequence == model[replica])
          #expect(table[replica] == nil)
          let stays = random.next() % 2 == 0
          if !stays { model[replica] = nil }
          table[replica] = model[replica].map(chain)
        }
        #expect(table.keys == model.keys.sorted())
        #expect(table.values.map(\.trunk.sequence) == model.keys.sorted().compactMap { model[$0] })
        #expect(table.compactMapValues(\.trunk.sequence) == model)
        for number in 0..<24 as Range<UInt64> {
          #expect(table[self.replica(number)]?.trunk.sequence == model[self.replica(number)])
        }
      }
    }
  }
}
