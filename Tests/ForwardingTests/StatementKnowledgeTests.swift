import Identity
import Replication
import Testing

@testable import Forwarding

@Suite("Which statements of a ledger a relay knows")
struct StatementKnowledgeTests {
  private let fleet = FleetID(Digest(words: (1, 2, 3, 4)))
  private let room = PartitionName.room(createdBy: .zero)

  private func id(_ number: UInt64) -> Digest { Digest(words: (number, 0, 0, 1)) }

  private func place(_ number: UInt64, in scope: Text = "") -> StatementPlace {
    StatementPlace(issuer: PublicKey(.zero), scope: scope, sequence: number, id: id(number))
  }

  private func chain(_ name: Text) throws -> ChainKey {
    ChainKey(
      partition: try PartitionName(name).id(fleet: fleet, hash: SHA256.hash), replica: ReplicaID(high: 1, low: 2))
  }

  private func told(
    held: [UInt64], there: [UInt64], brought: [UInt64] = [], elsewhere: [StatementPlace] = [], leftOut: [UInt64] = []
  ) throws -> (sum: Int64, chains: [ChainKey]) {
    let knowledge = StatementKnowledge(
      held: Set(held.map(id)), there: Set(there.map(id)), brought: brought.map(id), elsewhere: elsewhere)
    var batch = LedgerBatch()
    batch.heads = try [chain("agency=A"), chain(room)].map { LedgerBatch.Head(chain: $0, highest: 1, isForked: false) }
    knowledge.tell(in: &batch, leftOut: Set(leftOut.map(id)), fleet: fleet, SHA256.hash)
    return (batch.knownStatements, batch.heads.map(\.chain))
  }

  private func sum(_ numbers: [UInt64]) -> Int64 { StatementSum.of(numbers.map(id), SHA256.hash) }

  @Test("those that it holds and the ledger has, with those of the batch")
  func held() throws {
    let told = try told(held: [1, 2, 3], there: [1, 4], brought: [3])
    #expect(told.sum == sum([1, 3]))
    #expect(try told.chains == [chain("agency=A"), chain(room)])
  }

  @Test("of the fleet's that it does not hold those that cannot come into its set, and no others")
  func leftOut() throws {
    let elsewhere = [place(2), place(3)]
    #expect(try told(held: [1], there: [1, 2, 3], elsewhere: elsewhere, leftOut: [2, 3]).sum == sum([1, 2, 3]))
    #expect(try told(held: [1], there: [1, 2, 3], elsewhere: elsewhere, leftOut: [2]).sum == sum([1, 2]))
    // What came since is what it holds.
    #expect(try told(held: [1, 2], there: [1, 3], elsewhere: elsewhere, leftOut: [3]).sum == sum([1, 2, 3]))
  }

  @Test("a room's that it does not hold, but of no chain of that room how far it knows it")
  func rooms() throws {
    let lacking = try told(held: [1], there: [1, 2], elsewhere: [place(2, in: room)])
    #expect(lacking.sum == sum([1, 2]))
    #expect(try lacking.chains == [chain("agency=A")])
    let since = try told(held: [1, 2], there: [1], elsewhere: [place(2, in: room)])
    #expect(since.sum == sum([1, 2]))
    #expect(try since.chains == [chain("agency=A"), chain(room)])
  }
}
