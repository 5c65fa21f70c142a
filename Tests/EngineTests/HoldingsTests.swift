import Identity
import Replication
import Testing
import Wire

@testable import Engine
@testable import Storage

/// What nodes say that they hold, over real stores.
@Suite struct HoldingsTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private func bench(_ count: Int, writing size: Int = 10) throws -> EngineBench {
    let bench = try EngineBench(count)
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[0].write(room, Put("first", byteCount: size))
    for index in 1..<count { bench.meet(index, index - 1) }
    return bench
  }

  private func ask(_ bench: EngineBench, _ slot: Int) {
    let room = room
    bench.nodes[slot].engine.turn([.call { $0.askForHoldings(of: [room]) }])
    bench.run()
    bench.advance(600)
    bench.advance(600)
  }

  /// What `slot` knows that `other` says.
  private func word(_ bench: EngineBench, of other: Int, at slot: Int) -> Holdings? {
    let node = bench.nodes[slot]
    let subject = Holdings.Subject(device: bench.nodes[other].key.publicKey, kind: .received)
    return node.state.mesh.holdings.book[node.id(of: room), subject]?.holdings
  }

  @Test("asked, nodes say what they hold, and it is on disk at both ends")
  func asked() throws {
    let bench = try bench(2)
    #expect(word(bench, of: 0, at: 1) == nil, "a small change is not worth a word")
    ask(bench, 1)
    for slot in 0..<2 {
      #expect(word(bench, of: 0, at: slot)?.vector == bench.nodes[0].received(room))
      #expect(try bench.nodes[slot].store.holdings().map(\.holdings).contains { $0 == word(bench, of: 0, at: slot) })
    }
    #expect(word(bench, of: 0, at: 1)?.ownLast?.sequence == 1)
    try bench.restart(1)
    #expect(word(bench, of: 0, at: 1)?.vector == bench.nodes[0].received(room))
  }

  @Test("a large change is spoken of unasked, by who has it and over who passes it on")
  func unasked() throws {
    let bench = try bench(3, writing: 100_000)
    for _ in 0..<200 { bench.advance(500) }
    for slot in 0..<3 {
      for other in 0..<3 { #expect(word(bench, of: other, at: slot)?.vector == bench.nodes[0].received(room)) }
    }
  }

  @Test(
    "what does not read is not said to be held: the word is taken back unasked, and given again once it came anew",
    arguments: ["sum=sum+1", "sum=NULL, body=x'ff'"])
  func damaged(how: String) throws {
    let bench = try bench(2)
    let (node, chain) = (bench.nodes[1], try #require(bench.nodes[0].state.own.replica).id)
    try node.write(room, Put("own"))
    ask(bench, 0)
    #expect(word(bench, of: 1, at: 0)?.vector.count == 2)
    for id in node.state.mesh.sessions.ids { bench.cut(id) }
    try node.store.store.database.execute("UPDATE runs SET \(how) WHERE arrival=1")
    let late = try bench.addMember()
    try bench.nodes[late].subscribe("room=*")
    bench.meet(late, 1)
    for _ in 0..<20 { bench.advance(500) }
    #expect(node.state.damagedRuns.count == 1)
    #expect(node.journal.lines.count { $0.message == "reading the store failed" } == 1)
    for slot in [1, late] { #expect(word(bench, of: 1, at: slot).map { $0.vector[chain] } == .some(nil)) }
    #expect(word(bench, of: 1, at: late)?.ownLast?.sequence == 1)
    bench.meet(1, 0)
    for _ in 0..<20 { bench.advance(500) }
    ask(bench, late)
    for slot in [0, 1, late] { #expect(word(bench, of: 1, at: slot)?.vector == bench.nodes[0].received(room)) }
  }

  @Test("a word that the disk does not take is not told, and comes with the next question")
  func diskFull() throws {
    let bench = try bench(2)
    try bench.nodes[0].refuse("INSERT", on: "holdings")
    ask(bench, 1)
    #expect(word(bench, of: 0, at: 1) == nil && word(bench, of: 0, at: 0) == nil)
    try bench.nodes[0].allow("holdings")
    for _ in 0..<12 { bench.advance(500) }
    ask(bench, 1)
    #expect(word(bench, of: 0, at: 1)?.vector == bench.nodes[0].received(room))
    #expect(!bench.nodes[1].state.mesh.sessions.isEmpty, "no session ends over it")
  }

  @Test("a build that does not take words is told none, and goes on as ever")
  func earlierBuild() throws {
    let bench = try bench(2, writing: 100_000)
    let late = try bench.addMember(formats: TestBuild.earlier.formats)
    try bench.nodes[late].subscribe("room=*")
    bench.meet(late, 0)
    for _ in 0..<10 { bench.advance(500) }
    ask(bench, late)
    ask(bench, 0)
    #expect(try bench.nodes[late].shown(room, "first") != nil && bench.nodes[late].count("holdings") == 0)
    #expect(bench.nodes[late].state.mesh.sessions.count == 1)
    #expect(word(bench, of: 1, at: 0) != nil && word(bench, of: late, at: 0) == nil)
  }

  @Test("the word of a device of which two histories are known is shown as that, also where others told of them")
  func forked() throws {
    let bench = try bench(4, writing: 100_000)
    for _ in 0..<200 { bench.advance(500) }
    func standing(at slot: Int) -> [Receipt.Standing] {
      let node = bench.nodes[slot]
      let (id, device) = (node.id(of: room), bench.nodes[0].key.publicKey)
      let counted = node.received(room).entries.mapValues(\.sequence)
      return node.state.mesh.ledger.receipts(of: id, for: counted, in: node.state.mesh.holdings.book) { _, _ in nil }
        .filter { $0.holdings.device == device }.map(\.standing)
    }
    for slot in [1, 3] { #expect(standing(at: slot) == [.member]) }
    let copy = try bench.clone(0)
    try bench.nodes[0].write(room, Put("one"))
    try bench.nodes[copy].write(room, Put("two"))
    for slot in [0, copy] { bench.cut(bench.meet(slot, 1)) }
    bench.advance(10_000)
    for slot in [1, 3] { #expect(standing(at: slot) == [.forked]) }
  }

  @Test("what a forwarder read back is said under this device's signature, and without a vote of its own")
  func backend() throws {
    let bench = try bench(2)
    let (room, vector) = (room, bench.nodes[0].received(room))
    bench.nodes[0].engine.turn([.call { $0.noteBackend(room, has: vector) }])
    bench.run()
    let subject = Holdings.Subject(device: bench.nodes[0].key.publicKey, kind: .backend)
    let known = bench.nodes[1].state.mesh.holdings.book[bench.nodes[1].id(of: room), subject]
    #expect(known?.holdings.vector == vector)
    #expect(known.map { $0.signed.isSigned(Ed25519.verify) } == true)
  }
}
