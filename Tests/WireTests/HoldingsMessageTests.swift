import Replication
import TestSupport
import Testing

@testable import Wire

@Suite("Messages about holdings")
struct HoldingsMessageTests {
  private static let name: PartitionName? = try? PartitionName("agency=Gabon")

  private func item(
    _ generator: inout SplitMix64, kind: Holdings.Kind = .received, number: UInt64 = 9, base: UInt64 = 0
  ) throws -> HoldingsItem {
    let vector = generator.vector(count: 3)
    return HoldingsItem(
      partition: try #require(Self.name),
      subject: Holdings.Subject(device: PublicKey(generator.digest()), kind: kind), number: number, base: base,
      entries: base == 0
        ? .full(vector)
        : .increments(vector.sorted.map { ContextForm.Increment(replica: $0.replica, position: $0.position) }),
      ownLast: nil, signature: generator.signature())
  }

  private func message(_ items: [HoldingsItem]) -> Message { .holdings(.records(items)) }

  @Test("a record of a kind that is not known is left out, and the others are read")
  func unknownKind() throws {
    var generator = SplitMix64(seed: 4)
    let (first, second) = (try item(&generator), try item(&generator, kind: .backend, number: 11, base: 7))
    let whole = MessageCodec.encode(message([first, second]))
    #expect(try MessageCodec.decode(whole[...]) == message([first, second]))
    let alone = MessageCodec.encode(message([first]))
    var other = alone
    // Behind message and item heads, the name and the device's key.
    let kind = 1 + 1 + 1 + 1 + 13 + 34
    #expect(other[kind] == 0)
    other[kind] = 9
    #expect(try MessageCodec.decode(other[...]) == message([]))
  }

  @Test("an increment has a base below its number, and a whole record none")
  func bases() throws {
    var generator = SplitMix64(seed: 5)
    for (number, base) in [(7, 7), (7, 9)] as [(UInt64, UInt64)] {
      let bad = MessageCodec.encode(message([try item(&generator, number: number, base: base)]))
      #expect(throws: CBORError.self) { try MessageCodec.decode(bad[...]) }
    }
    let good = try item(&generator)
    let mixed = HoldingsItem(
      partition: good.partition, subject: good.subject, number: 9, base: 3, entries: good.entries, ownLast: nil,
      signature: good.signature)
    let encoded = MessageCodec.encode(message([mixed]))
    #expect(throws: CBORError.self) { try MessageCodec.decode(encoded[...]) }
  }

  @Test("more records, partitions or numbers than a message may have are refused, as is an unknown step")
  func limits() throws {
    var generator = SplitMix64(seed: 6)
    let name = try #require(Self.name)
    let one = try item(&generator)
    func question(_ question: HoldingsQuestion) -> Message { .holdings(.question(question)) }
    let subjects = (0...HoldingsQuestion.numberLimit).map { _ in
      Holdings.Subject(device: PublicKey(generator.digest()), kind: .received)
    }
    let numbers = Dictionary(subjects.map { ($0, UInt64(1)) }) { first, _ in first }
    let listed = HoldingsQuestion.Listed(prefix: 1, sum: 2)
    for bad in [
      message(Array(repeating: one, count: HoldingsItem.limit + 1)),
      question(.fresh(Array(repeating: name, count: HoldingsQuestion.freshLimit + 1))),
      question(.list(Array(repeating: listed, count: HoldingsQuestion.listLimit + 1))),
      question(.known([HoldingsQuestion.Known(partition: name, numbers: numbers)], wantsBack: true)),
    ] {
      let encoded = MessageCodec.encode(bad)
      #expect(throws: CBORError.self) { try MessageCodec.decode(encoded[...]) }
    }
    #expect(throws: CBORError.self) { try MessageCodec.decode([0x83, 23, 6, 0]) }
  }

  @Test("a damaged message is refused, or has the one form of what it says", arguments: 0..<8 as Range<UInt64>)
  func mutation(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    let items = [try item(&generator), try item(&generator, number: 11, base: 7)]
    let mutations = Mutations(original: MessageCodec.encode(message(items)))
    for part in mutations.truncations { #expect(throws: CBORError.self) { try MessageCodec.decode(part) } }
    for _ in 0..<200 {
      let damaged = mutations.random(&generator)
      guard let message = try? MessageCodec.decode(damaged[...]), case .holdings(.records(let read)) = message,
        read.count == items.count
      else { continue }
      #expect(MessageCodec.encode(message) == damaged)
    }
  }
}
