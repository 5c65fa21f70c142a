import Identity
import Replication
import TestSupport
import Testing
import Wire

@testable import Engine

/// Sessions over links that let less pass than is wanted.
@Suite("What a link lets pass") struct PassageTests {
  private let boat: PartitionName
  private let harbour: PartitionName
  private let room: PartitionName

  init() throws {
    boat = try PartitionName("boat=1")
    harbour = try PartitionName("harbour=1")
    room = try PartitionName("room=1")
  }

  /// Two nodes that want everything and have each written into all three; the link of node 0 is looked at.
  private func bench(_ passage: Passage?, documents: Int = 1) throws -> EngineBench {
    let bench = try EngineBench(2)
    bench.nodes[0].links.passage = passage
    for (slot, node) in bench.nodes.enumerated() {
      try node.subscribe("*")
      for index in 0..<documents {
        for name in [boat, harbour, room] { try node.write(name, Put(Text("\(slot) \(index)"))) }
      }
    }
    return bench
  }

  private func prefix(_ text: Text) -> Passage.Pattern { .prefix(text) }
  private func one(_ bench: EngineBench, _ name: PartitionName) -> Passage.Pattern {
    .partition(name, bench.nodes[0].id(of: name))
  }

  /// Whether the other's documents are at both, or at neither.
  private func crossed(_ bench: EngineBench, _ name: PartitionName, _ index: Int = 0) throws -> Bool? {
    let both = [
      try bench.nodes[0].shown(name, Text("1 \(index)")) != nil,
      try bench.nodes[1].shown(name, Text("0 \(index)")) != nil,
    ]
    return both[0] == both[1] ? both[0] : nil
  }

  private func names(_ messages: [Message]) -> Set<PartitionName> {
    Set(
      messages.flatMap { message -> [PartitionName] in
        switch message {
        case .runs(let batch): [batch.name]
        case .have(let vector), .pull(_, let vector): [vector.name]
        case .vectors(let list): list.map(\.name)
        default: []
        }
      })
  }

  @Test("over a link for authority alone statements cross, and no partition is named either way, old or new")
  func authority() throws {
    let bench = try bench(.authority)
    bench.meet(1, 0)
    for node in bench.nodes { try node.write(room, Put("later")) }
    let grant = try bench.statement(.grant(Statement.Grant(subject: .everyone, level: .read, pattern: "*")))
    bench.nodes[1].engine.turn([.call { $0.add([grant]) }])
    bench.run()
    for _ in 0..<80 { bench.advance(1_000) }
    #expect(bench.nodes[0].state.mesh.authority.holds(grant.id))
    for node in bench.nodes { #expect(names(node.links.sent).isEmpty) }
    for name in [boat, harbour, room] { #expect(try crossed(bench, name) == false) }
  }

  @Test("a link carries the partitions that it is for, both ways, and those alone", arguments: [false, true])
  func partitions(byPrefix: Bool) throws {
    let bench = try bench(.everything)
    let pattern = byPrefix ? prefix("harb") : one(bench, harbour)
    bench.nodes[0].links.passage = Passage([pattern], isThin: true)
    let session = bench.meet(1, 0)
    #expect(bench.nodes[0].links.keptShort == [session])
    #expect(try crossed(bench, harbour) == true)
    #expect(try crossed(bench, boat) == false && crossed(bench, room) == false)
    for node in bench.nodes { try node.write(room, Put("later")) }
    for _ in 0..<80 { bench.advance(1_000) }
    #expect(try crossed(bench, boat) == false && crossed(bench, room) == false)
    for node in bench.nodes { #expect(names(node.links.sent) == [harbour]) }
  }

  @Test("what comes to be wanted is told over a link that carries it, and not over another")
  func wishes() throws {
    let bench = try bench(.everything)
    try bench.nodes[0].subscribe("*", isWanted: false)
    bench.nodes[0].links.passage = Passage([one(bench, harbour)])
    for name: Text in ["room=1", "boat=1", "harbour=1"] { try bench.nodes[0].subscribe(name, isWanted: false) }
    bench.meet(1, 0)
    #expect(try crossed(bench, harbour) == false)
    bench.nodes[0].links.clearSent()
    try bench.nodes[0].subscribe("room=1")
    bench.run()
    #expect(bench.nodes[0].links.sent.isEmpty && names(bench.nodes[1].links.sent).isEmpty)
    try bench.nodes[0].subscribe("harbour=1")
    bench.run()
    for _ in 0..<4 { bench.advance(100) }
    #expect(try crossed(bench, harbour) == true && crossed(bench, room) == false)
    try bench.nodes[0].subscribe("harbour=1", isWanted: false)
    try bench.nodes[0].subscribe("room=1", isWanted: false)
    bench.run()
    try bench.nodes[1].write(harbour, Put("1 9"))
    bench.run()
    #expect(try bench.nodes[0].shown(harbour, "1 9") == nil)
  }

  @Test("a link over which nothing may pass ends what comes at once")
  func nothing() throws {
    let bench = try bench(nil)
    let session = bench.connect(1, 0)
    #expect(bench.nodes[0].trace.entries.contains(.closed(session)))
    bench.run()
    #expect(bench.nodes.allSatisfy { $0.state.mesh.sessions.isEmpty })
  }

  @Test(
    "where a link comes to let something else pass its sessions end with what is under way, and begin anew as it is then"
  )
  func moved() throws {
    let bench = try bench(.authority)
    let links = bench.nodes[0].links
    let session = bench.meet(1, 0)
    bench.nodes[0].engine.turn([.passagesMoved])
    #expect(bench.nodes[0].state.mesh.sessions[session] != nil, "it did not move")
    links.passage = .everything
    bench.nodes[0].engine.turn([.passagesMoved])
    #expect(bench.nodes[0].trace.entries.contains(.closed(session)))
    bench.run()
    bench.meet(1, 0)
    for name in [boat, harbour, room] { #expect(try crossed(bench, name) == true) }
  }

  @Test("on a link with an order a partition goes whole before the next one begins, whichever way it goes")
  func order() throws {
    for looked in [0, 1] {
      let bench = try bench(.everything)
      for index in 0..<40 {
        // A run each, so that a load is a part of them.
        for name in [boat, harbour, room] {
          try bench.nodes[looked].write(name, Put(Text("\(looked) large \(index)"), byteCount: 8_000))
        }
      }
      bench.nodes[0].links.passage = Passage([one(bench, room), prefix("boat"), prefix("")], isThin: true)
      let session = bench.connect(1, 0)
      // What node 0 sends waits until the transport has room again; the other end's queue has no bound.
      (bench.nodes[0].links.queueByteMark, bench.nodes[0].links.queuedByteCount) = (64 * 1_024, 100_000)
      for _ in 0..<400 {
        bench.run()
        bench.nodes[0].engine.turn([.drained(session)])
      }
      let order = bench.nodes[looked].links.sent.compactMap { message -> PartitionName? in
        if case .runs(let batch) = message { batch.name } else { nil }
      }
      #expect(order.count >= (looked == 0 ? 20 : 3))
      let last = Dictionary(order.enumerated().map { ($1, $0) }) { _, later in later }
      let first = Dictionary(order.enumerated().map { ($1, $0) }) { earlier, _ in earlier }
      let (a, b, c) = (try #require(last[room]), try #require(first[boat]), try #require(first[harbour]))
      #expect(a < b && (last[boat] ?? 0) < c, "\(looked): \(order.map(\.text.string))")
      for name in [boat, harbour, room] {
        #expect(try bench.nodes[1 - looked].shown(name, Text("\(looked) large 39")) != nil)
      }
    }
  }

  @Test("a peer that has nothing asks for partitions in the order of the link that they come over")
  func asked() throws {
    let bench = try EngineBench(2)
    for node in bench.nodes { try node.subscribe("*") }
    for name in [boat, harbour, room] { try bench.nodes[0].write(name, Put("one")) }
    // By their ids boat goes first.
    bench.nodes[0].links.passage = Passage([one(bench, room), prefix("boat"), prefix("")], isThin: true)
    bench.meet(1, 0)
    let asked = bench.nodes[1].links.sent.compactMap { message -> PartitionName? in
      if case .pull(_, let vector) = message { vector.name } else { nil }
    }
    #expect(asked == [room, boat, harbour], "\(asked.map(\.text.string))")
  }
}
