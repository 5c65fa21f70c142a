import Testing

@testable import Replication
@testable import Simulation

@Suite("Each chain is pushed to each node by one")
struct EagerBringerTests {
  /// Node 0 writes. Nodes 1 and 2 are linked with it and with node 3, and know nothing of one another.
  private struct Diamond {
    let bench: MeshBench
    var ids: [[Int]: SessionID] = [:]

    init(formats: [Int: KnownFormats] = [:]) throws {
      bench = try MeshBench([0, 1, 2, 3], formats: formats)
      for (a, b) in [(0, 1), (0, 2), (1, 3), (2, 3)] { ids[[a, b]] = bench.connected(a, b) }
    }

    /// Three changes have come, node 3 has chosen who pushes, and all is announced.
    static func settled() throws -> Diamond {
      let diamond = try Diamond()
      try diamond.write(3)
      diamond.bench.pass(3_000)
      return diamond
    }

    /// It writes so many changes, one after the other.
    func write(_ count: Int = 1) throws {
      for _ in 0..<count {
        try bench.nodes[0].write(Int64(bench.nodes[0].log.count))
        bench.pass(100)
      }
    }

    var held: UInt64 { bench.nodes[3].holds(bench.nodes[0]) }
    var chain: ReplicaID { bench.nodes[0].replica }

    func id(_ a: Int, _ b: Int) throws -> SessionID { try #require(ids[[a, b]]) }

    func chosen(by slot: Int = 3) -> EagerBringers.Chain? {
      bench.nodes[slot].mesh.trees.bringers[chain, bench.partition]
    }

    /// Runs that were sent to node 3.
    func copies(from slot: Int, since start: Int) -> Int {
      bench.messages(from: slot, to: 3, since: start).reduce(0) { count, message in
        if case .runs(let batch) = message { count + batch.entries.count } else { count }
      }
    }

    func choices(to slot: Int, since start: Int = 0) -> [PushChoice] {
      bench.messages(from: 3, to: slot, since: start).compactMap { message in
        if case .pushChoice(let choice) = message { choice } else { nil }
      }
    }
  }

  private func noteNamed(_ vector: VersionVector, by id: SessionID, at node: BenchNode, _ bench: MeshBench) {
    let (sessions, ledger) = (node.mesh.sessions, node.mesh.ledger)
    node.mesh.trees.noteNamed(vector, by: id, of: bench.partition, sessions, ledger, bench.now)
  }

  @Test("who brought a chain first is told to push it, who came second not to, once, and one copy comes from then on")
  func chosen() throws {
    let diamond = try Diamond.settled()
    let (name, chain) = (diamond.bench.name, diamond.chain)
    #expect(diamond.choices(to: 1) == [PushChoice(name, eager: [chain])])
    #expect(diamond.choices(to: 2) == [PushChoice(name, lazy: [chain])])
    let start = diamond.bench.transcript.count
    try diamond.write(10)
    #expect(diamond.held == 13 && diamond.copies(from: 1, since: start) == 10)
    #expect(diamond.copies(from: 2, since: start) == 0)
    diamond.bench.pass(3_000)
    #expect(diamond.choices(to: 1, since: start).isEmpty && diamond.choices(to: 2, since: start).isEmpty)
    #expect(diamond.bench.said(from: 2, to: 3, since: start).contains("have"), "what is left is announced")
  }

  @Test("nothing is chosen towards who does not know of it, and nothing of who does not", arguments: [1, 2, 3])
  func earlierBuild(slot: Int) throws {
    var formats = KnownFormats.all
    formats.features &= ~KnownFormats.Feature.pushChoice
    let diamond = try Diamond(formats: [slot: formats])
    try diamond.write(5)
    #expect(diamond.held == 5)
    if slot == 3 { #expect(diamond.choices(to: 1).isEmpty && diamond.choices(to: 2).isEmpty) }
    if slot < 3 { #expect(diamond.choices(to: slot).isEmpty) }
  }

  @Test("when the link with the chosen one breaks another one pushes what he was to push, at once")
  func linkBreaks() throws {
    var diamond = try Diamond()
    try diamond.write(3)
    diamond.bench.nodes[1].mesh.pause(try diamond.id(1, 3))
    try diamond.write()
    try #require(diamond.held == 3, "it is on its way from who is chosen")
    diamond.bench.cut(try diamond.id(1, 3))
    diamond.bench.pass(100)
    #expect(diamond.held == 4)
    let start = diamond.bench.transcript.count
    try diamond.write()
    #expect(diamond.held == 5 && diamond.copies(from: 2, since: start) == 1)
    // Back again he brings it a second time, and is told.
    diamond.ids[[1, 3]] = diamond.bench.connected(1, 3)
    try diamond.write(3)
    let id = try diamond.id(2, 3)
    #expect(diamond.chosen()?.eager == id)
    let later = diamond.bench.transcript.count
    try diamond.write(5)
    #expect(diamond.held == 13 && diamond.copies(from: 1, since: later) == 0)
    #expect(diamond.copies(from: 2, since: later) == 5)
  }

  @Test("when the chosen one is no longer linked with the author another one pushes it as soon as that is told")
  func authorLost() throws {
    let diamond = try Diamond()
    try diamond.write(3)
    diamond.bench.cut(try diamond.id(0, 1))
    try diamond.write()
    try #require(diamond.held == 3)
    diamond.bench.pass(1_000)
    #expect(diamond.held == 4)
    try diamond.write(2)
    #expect(diamond.held == 6)
  }

  @Test("what the chosen one withholds is asked of another who named it, who pushes the chain from then on")
  func withheld() throws {
    let diamond = try Diamond()
    try diamond.write(3)
    diamond.bench.nodes[1].mesh.pause(try diamond.id(1, 3))
    try diamond.write()
    diamond.bench.pass(5_000)
    let id = try diamond.id(2, 3)
    #expect(diamond.held == 4 && diamond.chosen()?.eager == id)
    #expect(diamond.choices(to: 2).last == PushChoice(diamond.bench.name, eager: [diamond.chain]))
    let start = diamond.bench.transcript.count
    try diamond.write()
    #expect(diamond.held == 5 && diamond.copies(from: 2, since: start) == 1)
  }

  /// Node 0 writes. Nodes 1 to 4 are linked with it and with node 5.
  private func fan() throws -> (bench: MeshBench, ids: [SessionID], copies: (Int) -> [Int]) {
    let bench = try MeshBench(Array(0...5))
    for slot in 1...4 { _ = bench.connected(0, slot) }
    let ids = (1...4).map { bench.connected($0, 5) }
    for number in 0..<3 {
      try bench.nodes[0].write(Int64(number))
      bench.pass(100)
    }
    bench.pass(3_000)
    func copies(since start: Int) -> [Int] {
      (1...4).map { slot in
        bench.messages(from: slot, to: 5, since: start).reduce(0) { count, message in
          if case .runs(let batch) = message { count + batch.entries.count } else { count }
        }
      }
    }
    return (bench, ids, copies)
  }

  @Test("a chain that stands still is asked of one, and of all when he does not bring it either", arguments: [1, 2])
  func graft(silent: Int) throws {
    let (bench, ids, copies) = try fan()
    let (start, chain) = (bench.transcript.count, bench.nodes[0].replica)
    for slot in 1...silent { bench.nodes[slot].mesh.pause(ids[slot - 1]) }
    let chosen = bench.nodes[5].mesh.trees.bringers[chain, bench.partition]?.eager
    try #require(chosen == ids[0])
    for number in 3..<23 { try bench.nodes[0].write(Int64(number)) }
    bench.pass(silent == 1 ? 4_500 : 6_500)
    #expect(bench.nodes[5].holds(bench.nodes[0]) == 23)
    #expect(copies(start) == (silent == 1 ? [0, 20, 0, 0] : [0, 0, 20, 20]))
  }

  @Test("who is silent since others push a chain is not asked for what is still on its way")
  func stillOnItsWay() throws {
    let (bench, _, copies) = try fan()
    bench.pass(6_000)
    let start = bench.transcript.count
    bench.delays = 0...12
    for number in 3..<33 {
      try bench.nodes[0].write(Int64(number))
      pass(1_000, in: bench)
    }
    #expect(bench.nodes[5].holds(bench.nodes[0]) == 33)
    #expect(copies(start) == [30, 0, 0, 0])
    #expect((1...4).flatMap { bench.said(from: 5, to: $0, since: start) }.filter { $0 == "pull" } == [])
  }

  @Test("who comes to be linked hears with the first change that comes that others push it")
  func newcomer() throws {
    let bench = try MeshBench(Array(0...6))
    for slot in [1, 2, 3, 4] { _ = bench.connected(0, slot) }
    for (a, b) in [(1, 5), (2, 5), (3, 6), (4, 6)] { _ = bench.connected(a, b) }
    for number in 0..<3 {
      try bench.nodes[0].write(Int64(number))
      bench.pass(100)
    }
    bench.pass(3_000)
    _ = bench.connected(5, 6)
    bench.pass(3_000)
    let start = bench.transcript.count
    for number in 3..<8 {
      try bench.nodes[0].write(Int64(number))
      pass(100, in: bench)
    }
    #expect(bench.nodes[5].holds(bench.nodes[0]) == 8 && bench.nodes[6].holds(bench.nodes[0]) == 8)
    for (a, b) in [(5, 6), (6, 5)] {
      let said = bench.said(from: a, to: b, since: start)
      #expect(said.contains("pushChoice") && !said.contains("runs"), "\(said)")
    }
  }

  @Test("a word is kept on a stream that equal summaries opened, before any change came on it")
  func levelStream() throws {
    let bench = try MeshBench([0, 1, 2])
    _ = bench.connected(0, 1)
    try bench.nodes[0].write(0)
    _ = bench.connected(0, 2)
    bench.pass(3_000)
    let id = bench.connected(1, 2)
    try #require(bench.nodes[1].mesh.sessions[id]?.live?.streams[bench.partition] == nil)
    bench.post(.pushChoice(PushChoice(bench.name, lazy: [bench.nodes[0].replica])), from: 2, on: id)
    bench.run()
    let choices = bench.nodes[1].mesh.sessions[id]?.live?.choices
    #expect(choices?.isLazy(bench.nodes[0].replica, in: bench.partition) == true)
  }

  @Test("who goes on to push what he was told not to is told again")
  func toldAgain() throws {
    let diamond = try Diamond.settled()
    let id = try diamond.id(2, 3)
    diamond.bench.nodes[2].mesh.sessions[id]?.live?.choices.forget(diamond.bench.partition)
    try diamond.write()
    diamond.bench.pass(3_000)
    let start = diamond.bench.transcript.count
    try diamond.write(10)
    #expect(diamond.held == 14 && diamond.copies(from: 2, since: start) == 0)
  }

  /// Nodes 0 and 4 write, linked with 5 alone. Nodes 1 and 2 are linked with 5 and with 3, which chose 1. Node 1 has lost 5, without a word
  /// of its author; node 2 writes each second.
  private func withoutSource(thin: Bool = false) throws -> (bench: MeshBench, write: (Int, UInt64) throws -> Void) {
    let bench = try MeshBench([0, 1, 2, 3, 4, 5])
    for (a, b) in [(0, 5), (4, 5)] { _ = bench.connected(a, b) }
    let (source, first) = (bench.connected(5, 1), bench.connected(1, 3))
    _ = bench.connected(5, 2)
    let other = bench.connected(2, 3)
    func write(_ slot: Int, _ milliseconds: UInt64) throws {
      try bench.nodes[slot].write(Int64(bench.nodes[slot].log.count))
      for _ in 0..<milliseconds / 1_000 {
        try bench.nodes[2].write(Int64(bench.nodes[2].log.count))
        bench.pass(1_000)
      }
    }
    for slot in [0, 4, 0, 4, 0, 4] { try write(slot, 1_000) }
    for slot in [0, 4] {
      let chosen = bench.nodes[3].mesh.trees.bringers[bench.nodes[slot].replica, bench.partition]?.eager
      try #require(chosen == first)
    }
    let mesh = bench.nodes[3].mesh
    if thin { bench.nodes[3].mesh.sessions[other]?.pass(Passage(nil, isThin: true), mesh.interest, mesh.ledger) }
    bench.cut(source)
    return (bench, write)
  }

  @Test(
    "what the chosen one has no more source of comes from who has it within seconds, chain by chain, over a thin link as well",
    arguments: [false, true])
  func sourceLost(thin: Bool) throws {
    let (bench, write) = try withoutSource(thin: thin)
    for slot in [0, 4] {
      let before = bench.nodes[3].holds(bench.nodes[slot])
      try write(slot, 6_000)
      #expect(bench.nodes[3].holds(bench.nodes[slot]) == before + 1, "of node \(slot)")
    }
  }

  @Test("what was left by the sender's own rule goes out when the chain is released, also where no more words are kept")
  func leftByRule() throws {
    let bench = try MeshBench([0, 1, 2])
    let slow = bench.connected(0, 1)
    let id = bench.connected(2, 1)
    _ = bench.connected(0, 2)
    try bench.nodes[0].write(0)
    bench.pass(3_000)
    bench.nodes[0].mesh.pause(slow)
    try bench.nodes[0].write(1)
    bench.pass(500)
    try #require(bench.nodes[1].holds(bench.nodes[0]) == 1, "it is left to the author")
    for number in 1...UInt64(PushChoices.partitionLimit) {
      let other = PartitionID(Digest(words: (number, 0, 0, 0)))
      let word = PushChoice(bench.name, lazy: [bench.nodes[0].replica])
      _ = bench.nodes[2].mesh.sessions[id]?.live?.choices.hear(word, of: other) { _ in true }
    }
    bench.post(.pushChoice(PushChoice(bench.name, released: [bench.nodes[0].replica])), from: 1, on: id)
    bench.run()
    bench.pass(100)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 2)
  }

  @Test("who holds a word that is not remembered where it was said is told when a chain stands still")
  func forgottenWord() throws {
    let diamond = try Diamond.settled()
    let id = try diamond.id(2, 3)
    diamond.bench.nodes[3].mesh.trees.forget(diamond.bench.partition)
    diamond.bench.nodes[1].mesh.pause(try diamond.id(1, 3))
    try diamond.write()
    diamond.bench.pass(6_000)
    #expect(diamond.held == 4)
    #expect(diamond.bench.nodes[2].mesh.sessions[id]?.live?.choices.isEmpty == true)
  }

  @Test("what somebody catches this node up with disproves who was chosen as well")
  func disprovedByCatchUp() throws {
    let diamond = try Diamond.settled()
    let (bench, node) = (diamond.bench, diamond.bench.nodes[3])
    let (first, second) = (try diamond.id(1, 3), try diamond.id(2, 3))
    try #require(diamond.chosen()?.eager == first)
    node.mesh.pause(first)
    bench.nodes[1].mesh.pause(first)
    node.mesh.trees.bringers.release([second], from: diamond.chain, of: bench.partition, at: bench.now)
    let asked = VersionVector([diamond.chain: ChainPosition(sequence: 4, tip: Digest.zero.tip)])
    node.mesh.pulls.catchUps.begin(bench.partition, on: second, for: asked, bench.now)
    try diamond.write()
    bench.pass(200)
    #expect(diamond.held == 4 && diamond.chosen()?.eager == nil)
  }

  @Test("who names far more than there is has nobody else push the chain, and changes nothing of who is chosen")
  func boaster() throws {
    let (bench, ids, copies) = try fan()
    let (chain, start) = (bench.nodes[0].replica, bench.transcript.count)
    let boast = VersionVector([chain: ChainPosition(sequence: 1_000, tip: Digest.zero.tip)])
    for number in 3..<13 {
      try bench.nodes[0].write(Int64(number))
      bench.post(.have(PartitionVector(name: bench.name, vector: boast)), from: 4, on: ids[3])
      pass(4_000, in: bench)
      let chosen = bench.nodes[5].mesh.trees.bringers[chain, bench.partition]?.eager
      #expect(chosen == ids[0])
    }
    let said = bench.said(from: 5, to: 4, since: start)
    #expect(bench.nodes[5].holds(bench.nodes[0]) == 13 && said.contains("pushChoice"), "\(said)")
    #expect(copies(start).prefix(3) == [10, 0, 0])
  }

  @Test("of those who have named a chain one is asked who has named more than is here, and no other keeps it waiting")
  func namedMore() throws {
    let diamond = try Diamond.settled()
    let (bench, node) = (diamond.bench, diamond.bench.nodes[3])
    func name(_ sequence: UInt64, _ slot: Int) throws {
      let vector = VersionVector([diamond.chain: ChainPosition(sequence: sequence, tip: Digest.zero.tip)])
      try noteNamed(vector, by: diamond.id(slot, 3), at: node, bench)
    }
    try name(4, 1)
    try name(9, 2)
    try diamond.write()
    let (start, id) = (bench.transcript.count, try diamond.id(1, 3))
    for _ in 0..<30 {
      node.mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.notePiece(bench.now)
      bench.pass(50)
    }
    #expect(diamond.choices(to: 2, since: start) == [PushChoice(bench.name, eager: [diamond.chain])])
  }

  @Test("an author is not told over and over that others push what he wrote, which he sends to all")
  func thinAuthor() throws {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connected(0, 2)
    let mesh = bench.nodes[2].mesh
    bench.nodes[2].mesh.sessions[id]?.pass(Passage(nil, isThin: true), mesh.interest, mesh.ledger)
    _ = bench.connected(0, 1)
    let link = bench.connected(1, 2)
    // Of a link over which not everything passes neighbours are not told.
    let author = DeviceMark(bench.nodes[0].device)
    bench.post(.neighbours(NeighbourNews(added: [], removed: [author])), from: 2, on: link)
    bench.run()
    for number in 0..<12 {
      try bench.nodes[0].write(Int64(number))
      pass(1_000, in: bench)
    }
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 12 && bench.said(from: 2, to: 1).contains("pushChoice"))
    #expect(bench.said(from: 2, to: 0).filter { $0 == "pushChoice" } == [])
  }

  @Test("an author over whose link not everything passes any more is not told that another pushes what he wrote")
  func authorBecomesThin() throws {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connected(0, 2)
    for (a, b) in [(0, 1), (1, 2)] { _ = bench.connected(a, b) }
    for number in 0..<3 {
      try bench.nodes[0].write(Int64(number))
      pass(1_000, in: bench)
    }
    let chain = bench.nodes[0].replica
    bench.nodes[2].mesh.trees.bringers.noteNew(chain, of: bench.partition, from: id, at: bench.now)
    bench.nodes[2].mesh.trees.bringers.choose(id, for: chain, of: bench.partition, ratherThan: [], at: bench.now)
    pass(100, in: bench)
    let (mesh, start) = (bench.nodes[2].mesh, bench.transcript.count)
    bench.nodes[2].mesh.sessions[id]?.pass(Passage(nil, isThin: true), mesh.interest, mesh.ledger)
    let author = DeviceMark(bench.nodes[0].device)
    let link = try #require(bench.nodes[1].mesh.sessions.ids.last)
    bench.post(.neighbours(NeighbourNews(added: [], removed: [author])), from: 2, on: link)
    bench.run()
    for number in 3..<8 {
      try bench.nodes[0].write(Int64(number))
      pass(1_000, in: bench)
    }
    let chosen = bench.nodes[2].mesh.trees.bringers[chain, bench.partition]?.eager
    #expect(chosen == link, "who is no author")
    #expect(bench.said(from: 2, to: 0, since: start).filter { $0 == "pushChoice" } == [])
  }

  @Test("a payload of the chosen one that takes long has nobody else send it, as long as its pieces come")
  func slowPayload() throws {
    let diamond = try Diamond.settled()
    let id = try diamond.id(1, 3)
    let (bench, node) = (diamond.bench, diamond.bench.nodes[3])
    let vector = VersionVector([diamond.chain: ChainPosition(sequence: 9, tip: Digest.zero.tip)])
    noteNamed(vector, by: id, at: node, bench)
    bench.pass(1_500)
    node.mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.notePiece(bench.now)
    bench.pass(1_500)
    #expect(diamond.chosen()?.eager == id)
    bench.pass(4_000)
    #expect(diamond.chosen()?.eager == nil)
    bench.cut(id)
    try diamond.write()
    #expect(diamond.held == 4, "whoever was told that another pushes it was told that nobody does")
  }

  @Test("a payload that its author sends for long is not asked of another who has it already")
  func slowAuthor() throws {
    let diamond = try Diamond()
    try diamond.write(3)
    let id = diamond.bench.connected(0, 3)
    try diamond.write(3)
    let (bench, node) = (diamond.bench, diamond.bench.nodes[3])
    try #require(diamond.chosen()?.eager == id)
    bench.pass(3_000)
    let (start, vector) = (
      bench.transcript.count, VersionVector([diamond.chain: ChainPosition(sequence: 7, tip: Digest.zero.tip)])
    )
    try noteNamed(vector, by: diamond.id(1, 3), at: node, bench)
    for _ in 0..<60 {
      node.mesh.sessions[id]?.live?.streams[bench.partition]?.incoming.notePiece(bench.now)
      bench.pass(50)
    }
    #expect(diamond.choices(to: 1, since: start) == [])
    bench.pass(2_000)
    #expect(diamond.choices(to: 1, since: start).first?.eager == [diamond.chain])
  }

  @Test("who wants the chain from this very node is chosen no more")
  func circle() throws {
    let diamond = try Diamond()
    try diamond.write(3)
    let id = try diamond.id(1, 3)
    try #require(diamond.chosen()?.eager == id)
    diamond.bench.post(.pushChoice(PushChoice(diamond.bench.name, eager: [diamond.chain])), from: 1, on: id)
    diamond.bench.run()
    let other = try diamond.id(2, 3)
    #expect(diamond.chosen()?.eager == other)
    let start = diamond.bench.transcript.count
    try diamond.write(2)
    #expect(diamond.held == 5 && diamond.copies(from: 2, since: start) == 2)
  }

  @Test("an author pushes to who chose another all the same, and is chosen when he links")
  func author() throws {
    let diamond = try Diamond()
    try diamond.write(3)
    let id = diamond.bench.connected(0, 3)
    try diamond.write(3)
    #expect(diamond.chosen()?.eager == id)
    diamond.bench.post(.pushChoice(PushChoice(diamond.bench.name, lazy: [diamond.chain])), from: 3, on: id)
    diamond.bench.run()
    let start = diamond.bench.transcript.count
    try diamond.write(2)
    #expect(diamond.held == 8 && diamond.copies(from: 0, since: start) == 2)
    #expect(diamond.copies(from: 1, since: start) + diamond.copies(from: 2, since: start) == 0)
  }

  @Test("what was left to others goes out to who comes to want it from here, but for what he has named")
  func takenBack() throws {
    let diamond = try Diamond.settled()
    diamond.bench.nodes[1].mesh.pause(try diamond.id(1, 3))
    try diamond.write(2)
    try #require(diamond.held == 3)
    let (id, start) = (try diamond.id(2, 3), diamond.bench.transcript.count)
    diamond.bench.post(.pushChoice(PushChoice(diamond.bench.name, eager: [diamond.chain])), from: 3, on: id)
    diamond.bench.run()
    diamond.bench.pass(100)
    #expect(diamond.held == 5 && diamond.copies(from: 2, since: start) == 2)
  }

  @Test("what was left behind a change that was sent just now goes out at once to who comes to want it from here")
  func takenBackBehindSent() throws {
    let diamond = try Diamond.settled()
    let (bench, id) = (diamond.bench, try diamond.id(2, 3))
    func say(_ choice: PushChoice) {
      bench.post(.pushChoice(choice), from: 3, on: id)
      bench.run()
    }
    say(PushChoice(bench.name, eager: [diamond.chain]))
    try diamond.write()
    let stream = try #require(bench.nodes[2].mesh.sessions[id]?.live?.streams[bench.partition])
    try #require(stream.outgoing.sent.sequence(of: diamond.chain) == 4, "it was sent")
    try #require(stream.known.sequence(of: diamond.chain) == 3, "it is not announced yet")
    bench.nodes[1].mesh.pause(try diamond.id(1, 3))
    say(PushChoice(bench.name, lazy: [diamond.chain]))
    try diamond.write()
    try #require(diamond.held == 4, "it is left to node 1")
    say(PushChoice(bench.name, eager: [diamond.chain]))
    bench.pass(100)
    #expect(diamond.held == 5)
  }

  @Test("a choice of chains that are not here, or of a partition that is not in common, keeps nothing")
  func unknown() throws {
    let diamond = try Diamond()
    try diamond.write()
    let (bench, id) = (diamond.bench, try diamond.id(2, 3))
    let chains = Set((0..<200).map { ReplicaID(high: 9, low: $0) })
    bench.post(.pushChoice(PushChoice(bench.name, eager: chains)), from: 3, on: id)
    bench.run()
    #expect(bench.nodes[2].mesh.sessions[id]?.live?.choices.isEmpty == true)
    bench.post(.interestChange(added: Interest(), removed: bench.fleet.interest("*")), from: 3, on: id)
    bench.post(.pushChoice(PushChoice(bench.name, lazy: [diamond.chain])), from: 3, on: id)
    bench.run()
    #expect(bench.nodes[2].mesh.sessions[id]?.live?.choices.isEmpty == true)
  }

  /// Each of twenty makes five links, and all of them write.
  @Test("among twenty nodes that are each linked with ten a change comes to each hardly more than once")
  func twenty() throws {
    let bench = try MeshBench(Array(0..<20))
    link(bench, each: 5)
    let load = Load(bench, writes: 600)
    try load.run(by: Array(0..<20))
    load.settle()
    #expect(load.copies < 1.2, "\(load.waits), \(load.said)")
    #expect(load.worst < 500, "\(load.waits)")
  }

  @Test("where links break and others are made all the time, a change still comes once and a little, and soon")
  func churn() throws {
    let bench = try MeshBench(Array(0..<20))
    link(bench, each: 5)
    let load = Load(bench, writes: 600)
    try load.run(by: Array(0..<20)) { written in
      guard written % 25 == 0 else { return }
      let ids = bench.nodes.flatMap { $0.mesh.sessions.ids }
      bench.cut(ids[Int.random(in: ids.indices, using: &bench.random)])
      var pair: [Int] = []
      repeat {
        pair = (0..<2).map { _ in Int.random(in: 0..<20, using: &bench.random) }
      } while pair[0] == pair[1] || bench.areLinked(pair[0], pair[1])
      _ = bench.connect(pair[0], pair[1])
    }
    load.settle()
    #expect(load.copies < 1.5, "\(load.waits), \(load.said)")
    #expect(load.worst < 5_000, "\(load.waits)")
  }
}

/// Each node looks at what is due as soon as it is, as an engine does.
private func pass(_ milliseconds: UInt64, in bench: MeshBench) {
  let end = bench.now.advanced(byMilliseconds: milliseconds)
  while bench.now < end {
    bench.now = bench.now.advanced(byMilliseconds: 5)
    bench.run()
    let isTick = bench.now.milliseconds % Mesh.tickMilliseconds == 0
    for node in bench.nodes where isTick || node.mesh.nextDeadline.map({ $0 <= bench.now }) == true {
      node.deliver(.tick)
    }
    bench.run()
  }
}

private func link(_ bench: MeshBench, each count: Int) {
  var linked: Set<[Int]> = []
  for slot in bench.nodes.indices {
    var made = 0
    while made < count {
      let other = Int.random(in: bench.nodes.indices, using: &bench.random)
      guard other != slot, linked.insert([min(slot, other), max(slot, other)]).inserted else { continue }
      _ = bench.connected(slot, other)
      made += 1
    }
  }
}

/// Nodes that write, a hundred changes a second together, over links that take a while.
private final class Load {
  private let bench: MeshBench
  private let writes: Int
  private let start: Int
  private var written: [(slot: Int, sequence: UInt64, at: MonotonicTime)] = []
  private var lacking: [(write: Int, slot: Int)] = []
  private var times: [UInt64] = []

  init(_ bench: MeshBench, writes: Int) {
    (self.bench, self.writes) = (bench, writes)
    bench.pass(3_000)
    start = bench.transcript.count
    bench.delays = 0...12
  }

  func run(by slots: [Int], _ disturb: (Int) -> Void = { _ in }) throws {
    while written.count < writes {
      let slot = slots[Int.random(in: slots.indices, using: &bench.random)]
      try bench.nodes[slot].write(Int64(1_000 + written.count))
      written.append((slot, bench.nodes[slot].holds(bench.nodes[slot]), bench.now))
      lacking += bench.nodes.indices.filter { $0 != slot }.map { (written.count - 1, $0) }
      disturb(written.count)
      tick()
      tick()
    }
  }

  func settle() { for _ in 0..<2_000 where !lacking.isEmpty { tick() } }

  private func tick() {
    pass(5, in: bench)
    lacking.removeAll { item in
      let write = written[item.write]
      guard bench.nodes[item.slot].holds(bench.nodes[write.slot]) >= write.sequence else { return false }
      times.append(bench.now.millisecondsSince(write.at))
      return true
    }
  }

  /// Runs that came to nodes, of those that had to.
  var copies: Double {
    let runs = bench.transcript.dropFirst(start).reduce(0) { count, line in
      if case .runs(let batch) = line.message { count + batch.entries.count } else { count }
    }
    return Double(runs) / Double(written.count * (bench.nodes.count - 1))
  }

  var worst: UInt64 { lacking.isEmpty ? times.max() ?? 0 : .max }

  var waits: String {
    let sorted = times.sorted()
    guard !sorted.isEmpty else { return "nothing came" }
    let (half, most) = (sorted[sorted.count / 2], sorted[sorted.count * 99 / 100])
    return "p50 \(half), p99 \(most), worst \(sorted[sorted.count - 1]) ms, \(lacking.count) lacking"
  }

  var said: [String: Int] {
    bench.transcript.dropFirst(start).reduce(into: [:]) { counts, line in
      counts[String("\(line.message)".prefix { $0 != "(" }), default: 0] += 1
    }
  }
}
