import Links
import Replication
import TestSupport
import Testing

@testable import Forwarding

@Suite("What a forwarder sends over a link that lets less pass")
struct ForwarderLinkTests {
  private let inOrder = LinkAllowance(.partitions(["p=2", "p=0"]), isThin: true)

  private func model(_ allowance: LinkAllowance, runs: Int = 60, seed: UInt64 = 1) -> ForwarderModel {
    var model = ForwarderModel(seed: seed)
    for number in 0..<runs { model.write(chain: UInt64(number % 6), changes: 2) }
    model.tell(.allowance(allowance))
    model.tell(.start)
    return model
  }

  private func place(_ run: LedgerBatch.Run) -> Int {
    ["p=2", "p=0", "p=1"].firstIndex { $0 == ForwarderModel.name(of: run.chain.partition).text.string } ?? 9
  }

  @Test("partitions go in the link's order, each in that of its log, and the others stay until the link carries them")
  func order() {
    var model = model(inOrder)
    #expect(model.ledger.count == 40 && model.ledger.map(place) == model.ledger.map(place).sorted())
    #expect(model.ledger.allSatisfy { place($0) < 2 })
    #expect(model.forwarder.state == .lagging && model.forwarder.lag.changes == 40)
    #expect(model.forwarder.linkSentence == "the link does not carry all partitions")
    // What comes then goes in the same order.
    for number in 0..<6 { model.write(chain: UInt64(number)) }
    model.tell(.news(model.accepted))
    #expect(model.ledger.suffix(4).map(place) == [0, 0, 1, 1])
    let sent = model.batches.flatMap(\.runs).count
    model.tell(.allowance(.free))
    #expect(Set(model.ledger.map(\.hash)) == Set(model.log.map(\.hash)) && model.ledger.count == model.log.count)
    #expect(model.batches.flatMap(\.runs).count == sent + 22, "nothing goes twice")
    #expect(model.forwarder.state == .caughtUp && model.forwarder.linkSentence.isEmpty)
  }

  @Test("at its limit a connection that stands stays, and nothing but statements is asked of the log or the ledger")
  func authority() {
    var model = model(LinkAllowance(.everything, isThin: true))
    #expect(model.forwarder.state == .caughtUp)
    model.tell(.allowance(LinkAllowance(.authority, isThin: true)))
    let (asked, readBacks) = (model.asked, model.readBacks)
    for number in 0..<12 { model.write(chain: UInt64(number % 6)) }
    model.tell(.news(model.accepted))
    for _ in 0..<200 { model.wait() }
    #expect(model.asked == asked && model.readBacks == readBacks)
    #expect(model.forwarder.state == .lagging && model.forwarder.lag.changes == 12)
    #expect(model.forwarder.editPaceMilliseconds == nil)
    model.tell(.allowance(LinkAllowance(.everything, isThin: true)))
    #expect(model.forwarder.state == .caughtUp && model.ledger.count == model.log.count)
    #expect(model.forwarder.editPaceMilliseconds == model.forwarder.limits.thinEditMilliseconds)
  }

  @Test(
    "at its limit, or where nothing may pass, no connection is made, without spinning, until more may",
    arguments: [
      LinkPassage.authority, .nothing,
    ])
  func noConnection(passage: LinkPassage) {
    var model = model(LinkAllowance(passage, isThin: true))
    model.tell(.news(model.accepted))
    let start = model.now
    for _ in 0..<50 { model.wait() }
    #expect(model.now.millisecondsSince(start) == 50 * model.forwarder.limits.longestPauseMilliseconds)
    #expect(model.asked.isEmpty)
    model.tell(.allowance(.free))
    #expect(model.forwarder.state == .caughtUp && model.ledger.count == model.log.count)
  }

  @Test("whatever moves and fails, each run comes into the ledger in the end, and once", arguments: 0..<100)
  func moves(seed: Int) {
    var model = model(inOrder, seed: UInt64(seed))
    model.failuresOf100 = 20
    let allowances = [
      inOrder, .free, LinkAllowance(.everything, isThin: true), LinkAllowance(.authority, isThin: true),
      LinkAllowance(.partitions(["p=1"]), isThin: true), LinkAllowance(.nothing, isThin: true),
    ]
    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0...3, using: &model.random) {
        model.write(chain: .random(in: 0..<6, using: &model.random))
      }
      if Int.random(in: 0..<3, using: &model.random) == 0, let next = allowances.randomElement(using: &model.random) {
        model.tell(.allowance(next))
      }
      if Bool.random(using: &model.random) { model.tell(.news(model.accepted)) } else { model.wait() }
    }
    model.failuresOf100 = 0
    model.tell(.allowance(.free))
    model.tell(.news(model.accepted))
    for _ in 0..<3 { model.wait() }
    #expect(Set(model.ledger.map(\.hash)) == Set(model.log.map(\.hash)) && model.ledger.count == model.log.count)
    #expect(model.forwarder.state == .caughtUp, "seed \(seed)")
    for (partition, vector) in model.accepted {
      for (replica, position) in vector.entries {
        #expect(model.marks[ChainKey(partition: partition, replica: replica)] == position, "seed \(seed)")
      }
    }
  }
}
