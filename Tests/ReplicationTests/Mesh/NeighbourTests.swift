import Testing

@testable import Replication
@testable import Simulation

@Suite("What a neighbour brings is not brought twice")
struct NeighbourTests {
  /// All linked with all, all streams open, and node 0 has written once.
  private func clique(_ count: Int, formats: [Int: KnownFormats] = [:]) throws -> (MeshBench, [[SessionID?]]) {
    let bench = try MeshBench(Array(0..<count), formats: formats)
    var links = [[SessionID?]](repeating: [SessionID?](repeating: nil, count: count), count: count)
    for a in 0..<count {
      for b in 0..<a {
        let id = bench.connected(a, b)
        (links[a][b], links[b][a]) = (id, id)
      }
    }
    try bench.nodes[0].write(0)
    bench.pass(3_000)
    for node in bench.nodes { try #require(node.holds(bench.nodes[0]) == 1) }
    return (bench, links)
  }

  /// Runs that were sent to a node, by whomever.
  private func copies(to slot: Int, _ bench: MeshBench, _ start: Int) -> Int {
    bench.nodes.indices.filter { $0 != slot }.reduce(0) { count, other in
      bench.messages(from: other, to: slot, since: start).reduce(count) {
        if case .runs(let batch) = $1 { $0 + batch.entries.count } else { $0 }
      }
    }
  }

  private func haves(to slot: Int, _ bench: MeshBench, _ start: Int) -> [Int] {
    bench.nodes.indices.filter { $0 != slot }.map { other in
      bench.said(from: other, to: slot, since: start).count { $0 == "have" }
    }
  }

  @Test("each peer is told with whom this node is linked, once, and who is gone")
  func told() throws {
    let (bench, links) = try clique(3)
    let marks = bench.nodes.map { DeviceMark($0.device) }
    let id = try #require(links[0][1])
    #expect(bench.nodes[0].mesh.sessions[id]?.sparing?.neighbours == [marks[2]])
    #expect(bench.nodes[1].mesh.sessions[id]?.sparing?.neighbours == [marks[2]])
    let start = bench.transcript.count
    bench.cut(try #require(links[1][2]))
    bench.pass(950)
    #expect(bench.messages(from: 1, to: 0, since: start).isEmpty, "it may be back")
    bench.pass(50)
    #expect(bench.messages(from: 1, to: 0, since: start) == [.neighbours(NeighbourNews(removed: [marks[2]]))])
    #expect(bench.nodes[0].mesh.sessions[id]?.sparing?.neighbours == [])
  }

  @Test("who is a member again is told who is gone since it was none, and who came")
  func toldToAMemberAgain() throws {
    let bench = try MeshBench([0, 1, 2, 3])
    let marks = bench.nodes.map { DeviceMark($0.device) }
    let (id, other) = (bench.connected(0, 1), bench.connected(1, 2))
    func named() -> Set<DeviceMark>? { bench.nodes[0].mesh.sessions[id]?.sparing?.neighbours }
    try #require(named() == [marks[2]])
    try bench.endMembership(of: 0, knownBy: 1)
    bench.cut(other)
    _ = bench.connected(1, 3)
    bench.pass(2_000)
    #expect(named() == [marks[2]], "who is no member hears nothing of it")
    try bench.admitAgain(0, knownBy: 1)
    bench.run()
    #expect(named() == [marks[3]])
  }

  @Test("it is known of each peer with how many it is linked, of who has nobody else, too")
  func counted() throws {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connected(0, 1)
    #expect(bench.nodes[0].links[id] == [1] && bench.nodes[1].links[id] == [1])
    let other = bench.connected(1, 2)
    #expect(bench.nodes[0].links[id] == [1, 2] && bench.nodes[1].links[id] == [1])
    #expect(bench.nodes[2].links[other]?.last == 2)
    bench.cut(other)
    bench.pass(1_500)
    #expect(bench.nodes[0].links[id] == [1, 2, 1])
    bench.cut(id)
    let again = bench.connected(0, 1)
    #expect(bench.nodes[0].links[again] == [1])
  }

  @Test("who is linked with again within a second was never gone")
  func back() throws {
    let (bench, links) = try clique(3)
    let start = bench.transcript.count
    bench.cut(try #require(links[1][2]))
    bench.pass(500)
    _ = bench.connected(1, 2)
    bench.pass(2_000)
    for message in bench.messages(from: 1, to: 0, since: start) {
      if case .neighbours(let news) = message { #expect(news.removed.isEmpty) }
    }
    let id = try #require(links[0][1])
    #expect(bench.nodes[0].mesh.sessions[id]?.sparing?.neighbours == [DeviceMark(bench.nodes[2].device)])
  }

  @Test("a change reaches each of five linked nodes once, and each of them says now and then what it has")
  func live() throws {
    let (bench, _) = try clique(5)
    let start = bench.transcript.count
    for value in 1...10 as ClosedRange<Int64> {
      try bench.nodes[0].write(value)
      bench.pass(50)
    }
    bench.pass(3_000)
    for slot in 1..<5 {
      #expect(bench.nodes[slot].holds(bench.nodes[0]) == 11)
      #expect(copies(to: slot, bench, start) == 10)
      #expect(haves(to: slot, bench, start).reduce(0, +) == 3, "one of each of the others, but of who writes")
      #expect(bench.said(from: slot, to: 0, since: start).count { $0 == "have" } == 1)
    }
  }

  @Test("all write on top of one another at once, and each change still goes to each node once")
  func crosswise() throws {
    let (bench, _) = try clique(4)
    let start = bench.transcript.count
    for round in 0..<5 as Range<Int64> {
      for (slot, node) in bench.nodes.enumerated() {
        try node.write(100 + round * 10 + Int64(slot))
        bench.run(7)
      }
    }
    bench.pass(3_000)
    for slot in 0..<4 {
      for other in bench.nodes { #expect(bench.nodes[slot].holds(other) >= 5) }
      #expect(copies(to: slot, bench, start) == 15)
      #expect(bench.nodes[slot].mesh.sessions.count == 3)
    }
  }

  @Test("a newcomer's changes reach each of those it links with once, though they are linked with one another")
  func newcomer() throws {
    let bench = try MeshBench([0, 1, 2, 3])
    for a in 1..<4 { for b in 1..<a { _ = bench.connected(a, b) } }
    for value in 0..<30 as Range<Int64> { try bench.nodes[0].write(value) }
    let start = bench.transcript.count
    for slot in 1..<4 { _ = bench.connect(0, slot) }
    bench.pass(3_000)
    for slot in 1..<4 {
      #expect(bench.nodes[slot].holds(bench.nodes[0]) == 30)
      #expect(copies(to: slot, bench, start) == 30)
    }
  }

  /// Nodes 1 and 2 are linked and have what node 1 wrote; node 0, linked with both, begins to want it and asks node 1.
  private func catchUpBesideAnother() throws -> MeshBench {
    let bench = try MeshBench([0, 1, 2], wants: ["agency=Elsewhere"])
    for (a, b) in [(1, 2), (0, 1), (0, 2)] { _ = bench.connected(a, b) }
    try bench.nodes[1].write(1)
    bench.pass(3_000)
    bench.nodes[0].deliver(.interestChanged(added: bench.fleet.interest("*"), removed: Interest()))
    return bench
  }

  @Test("what a peer leaves to others while it does a catch-up is asked of them once it has sent what it was asked for")
  func leftDuringCatchUp() throws {
    let bench = try catchUpBesideAnother()
    bench.nodes[0].holdsCommits = true
    bench.run()
    try bench.nodes[2].write(2)
    // Until what came is on the disk the catch-up goes on.
    try #require(bench.nodes[0].holds(bench.nodes[1]) == 1)
    bench.pass(2_500)
    #expect(bench.nodes[0].holds(bench.nodes[2]) == 1)
  }

  @Test("a catch-up goes on while what was asked for is on its way, however much more the peer names")
  func slowCatchUp() throws {
    let bench = try catchUpBesideAnother()
    bench.nodes[1].holdsLoads = true
    bench.run()
    try bench.nodes[2].write(2)
    let start = bench.transcript.count
    bench.pass(2_500)
    #expect(!bench.said(from: 0, to: 2, since: start).contains("pull"))
  }

  @Test("who has done a catch-up hears at its end, and not a second later, that it is here")
  func caughtUp() throws {
    let bench = try MeshBench([0, 1])
    for value in 0..<30 as Range<Int64> { try bench.nodes[0].write(value) }
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 30)
    #expect(bench.said(from: 1, to: 0, since: start).last == "have")
  }

  @Test("who is linked over what keeps something back is named to nobody, and what he writes is passed on at once")
  func keptBack() throws {
    let bench = try MeshBench([0, 1, 2])
    let id = bench.connected(0, 1)
    _ = bench.connect(0, 2, .authority)
    bench.run()
    _ = bench.connected(1, 2)
    bench.pass(3_000)
    #expect(bench.nodes[1].mesh.sessions[id]?.sparing?.neighbours == [])
    try bench.nodes[2].write(0)
    bench.pass(100)
    #expect(bench.nodes[0].holds(bench.nodes[2]) == 1)
  }

  @Test("a few changes of who has just come are passed on at once")
  func newcomersFew() throws {
    let bench = try MeshBench([0, 1, 2])
    _ = bench.connected(2, 1)
    try bench.nodes[0].write(0)
    let start = bench.transcript.count
    _ = bench.connected(0, 1)
    bench.pass(100)
    #expect(copies(to: 2, bench, start) == 1)
  }

  @Test(
    "who links a second later with who brought much gets nothing of it from others, and who does not link gets it then")
  func newcomerSlowly() throws {
    for links in [true, false] {
      let bench = try MeshBench([0, 1, 2])
      _ = bench.connected(2, 1)
      for value in 0..<30 as Range<Int64> { try bench.nodes[0].write(value, payloadByteCount: 400) }
      let start = bench.transcript.count
      _ = bench.connect(0, 1)
      bench.pass(1_000)
      #expect(bench.nodes[1].holds(bench.nodes[0]) == 30 && copies(to: 2, bench, start) == 0)
      if links {
        let id = bench.connect(0, 2)
        bench.nodes[0].holdsLoads = true
        bench.run()
        bench.nodes[0].mesh.pause(id)
        bench.pass(1_500)
        #expect(copies(to: 2, bench, start) == 0, "left to the newcomer")
      } else {
        bench.pass(1_000)
        #expect(bench.nodes[2].holds(bench.nodes[0]) == 30 && copies(to: 2, bench, start) == 30)
      }
    }
  }

  @Test(
    "of what a newcomer brings nothing goes to who links with him as well, on whichever stream opens meanwhile",
    arguments: [true, false], [true, false])
  func opensMeanwhile(links: Bool, asks: Bool) throws {
    let bench = try MeshBench([0, 1, 2, 3])
    let ids = [(2, 1), (3, 1), (3, 2)].map { bench.connected($0.0, $0.1) }
    // What is wanted only now was not compared: of it no stream is open.
    let all = bench.fleet.interest("*")
    for node in bench.nodes[1...] { node.deliver(.interestChanged(added: Interest(), removed: all)) }
    for node in bench.nodes[1...] { node.deliver(.interestChanged(added: all, removed: Interest())) }
    bench.run()
    try bench.nodes[1].write(0)
    // After two seconds node 3 names it to node 2.
    bench.pass(1_500)
    let first = try #require(bench.nodes[2].state).clipped
    for value in 0..<30 as Range<Int64> { try bench.nodes[0].write(value, payloadByteCount: 400) }
    let start = bench.transcript.count
    _ = bench.connect(0, 2)
    bench.pass(50)
    // The same word of node 2, which comes behind what the newcomer brings: node 3 asks for the stream.
    if asks { bench.post(.have(PartitionVector(name: bench.name, vector: first)), from: 2, on: ids[2]) }
    bench.pass(950)
    #expect(bench.said(from: 3, to: 2, since: start).contains("pull") == asks)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 30 && copies(to: 3, bench, start) == 0)
    if links { for slot in [1, 3] { _ = bench.connect(0, slot) } }
    bench.pass(1_500)
    for slot in [1, 3] {
      #expect(bench.nodes[slot].holds(bench.nodes[0]) == 30)
      if links { #expect(copies(to: slot, bench, start) == 30) }
    }
    for (a, b) in [(2, 3), (3, 2)] { #expect(bench.said(from: a, to: b, since: start).contains("pull")) }
  }

  /// Nodes 1 and 2 are linked, and a stream of the partition is open between them or none. Node 0 has much, and links with
  /// node 1 alone, to which it brings so much at once and no more yet.
  private func bringingMuch(_ count: Int64, first: Int, isOpen: Bool) throws -> (MeshBench, SessionID, SessionID) {
    let bench = try MeshBench([0, 1, 2])
    let other = bench.connected(2, 1)
    if isOpen {
      try bench.nodes[1].write(0)
      bench.pass(3_000)
      try #require(bench.nodes[2].holds(bench.nodes[1]) == 1)
    } else {
      // What is wanted only now was not compared: of it no stream is open.
      let all = bench.fleet.interest("*")
      for node in bench.nodes[1...] { node.deliver(.interestChanged(added: Interest(), removed: all)) }
      for node in bench.nodes[1...] { node.deliver(.interestChanged(added: all, removed: Interest())) }
      bench.run()
    }
    for value in 0..<count { try bench.nodes[0].write(value, payloadByteCount: 2_000) }
    bench.nodes[0].holdsLoads = true
    let id = bench.connected(0, 1)
    bring(0..<first, bench, id)
    return (bench, id, other)
  }

  private func bring(_ places: Range<Int>, _ bench: MeshBench, _ id: SessionID) {
    let runs = Array(bench.nodes[0].log[places])
    bench.nodes[0].deliver(.loaded(id, bench.partition, runs, hasMore: true))
    bench.run()
  }

  @Test(
    "what a newcomer goes on to bring reaches who is not linked with him, however closely one change follows another",
    arguments: [true, false])
  func bringsOnAndOn(isOpen: Bool) throws {
    let (bench, id, _) = try bringingMuch(220, first: 6, isOpen: isOpen)
    for place in 6..<216 {
      bench.now = bench.now.advanced(byMilliseconds: 20)
      for node in bench.nodes { node.deliver(.tick) }
      bench.run()
      bring(place..<place + 1, bench, id)
    }
    #expect(bench.nodes[1].holds(bench.nodes[0]) == 216)
    #expect(bench.nodes[2].holds(bench.nodes[0]) > 200, "four seconds have passed")
  }

  @Test("what a peer writes while it is not asked for its stream waits for no end of what a newcomer brings")
  func writesMeanwhile() throws {
    let (bench, id, other) = try bringingMuch(100, first: 6, isOpen: false)
    bench.pass(100)
    let held = try #require(bench.nodes[1].state).clipped
    // A word of node 1: node 2 asks for the stream, and is not asked for its own.
    bench.nodes[2].receive(.have(PartitionVector(name: bench.name, vector: held)), on: other)
    bench.run()
    try #require(bench.nodes[1].mesh.sessions[other]?.live?.streams[bench.partition]?.incoming.number == nil)
    try bench.nodes[2].write(1)
    for place in 6..<66 {
      bring(place..<place + 1, bench, id)
      bench.pass(100)
    }
    #expect(bench.nodes[1].mesh.pulls.catchUps.session(of: bench.partition) == id, "it goes on")
    #expect(bench.nodes[1].holds(bench.nodes[2]) == 1)
  }

  @Test("a catch-up whose changes wait for what a neighbour was to bring is over, and the neighbour is asked")
  func caughtUpAhead() throws {
    let bench = try MeshBench([0, 1, 2])
    let links = [(0, 1), (0, 2), (1, 2)].map { bench.connected($0.0, $0.1) }
    let all = bench.fleet.interest("*")
    for node in bench.nodes { node.deliver(.interestChanged(added: Interest(), removed: all)) }
    for node in bench.nodes { node.deliver(.interestChanged(added: all, removed: Interest())) }
    bench.run()
    bench.cut(links[1])
    try bench.nodes[2].write(1)
    bench.run()
    // Node 0 hears of this one alone, and gets it from node 1; what it stands on is left to node 2.
    try bench.nodes[1].write(2)
    bench.run()
    try #require(bench.nodes[0].mesh.footprint.postponedBytes > 0)
    bench.pass(500)
    // Node 1 was told of no break.
    _ = bench.connected(0, 2)
    bench.pass(2_000)
    #expect(bench.nodes[0].holds(bench.nodes[1]) == 1 && bench.nodes[0].holds(bench.nodes[2]) == 1)
  }

  /// Node 0 comes to node 1, whose wishes changed a moment ago, and brings it work that it does not announce to node 2 yet.
  /// Answers the session of these two.
  private func bringsUnannounced(_ bench: MeshBench) throws -> SessionID {
    let id = bench.connected(2, 1)
    let all = bench.fleet.interest("*")
    bench.nodes[1].deliver(.interestChanged(added: Interest(), removed: all))
    bench.nodes[1].deliver(.interestChanged(added: all, removed: Interest()))
    bench.run()
    for value in 0..<30 as Range<Int64> { try bench.nodes[0].write(value, payloadByteCount: 400) }
    _ = bench.connected(0, 1)
    try #require(bench.nodes[1].mesh.sessions[id]?.sparing?.unannounced(bench.partition) != nil)
    return id
  }

  @Test(
    "who was told of what a newcomer brings, by a comparison or by a pull, and asks for it has it at once",
    arguments: [true, false])
  func toldOtherwise(byComparison: Bool) throws {
    let bench = try MeshBench([0, 1, 2])
    let id = try bringsUnannounced(bench)
    if byComparison { bench.nodes[1].ask(id) } else { try bench.nodes[2].write(1) }
    bench.run()
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 30)
  }

  @Test("who asks for a stream and has all of what waits to be announced is owed nothing of it")
  func opensLevel() throws {
    let bench = try MeshBench([0, 1, 2])
    let id = try bringsUnannounced(bench)
    let held = try #require(bench.nodes[1].state?.clipped)
    bench.nodes[1].receive(.pull(stream: 9, PartitionVector(name: bench.name, vector: held)), on: id)
    #expect(bench.nodes[1].mesh.sessions[id]?.live?.relays[bench.partition] == nil)
  }

  @Test("who is not linked with who brought it gets it after the usual wait")
  func unlinked() throws {
    let (bench, links) = try clique(3)
    bench.cut(try #require(links[0][2]))
    bench.pass(1_000)
    try bench.nodes[0].write(1)
    bench.run()
    bench.pass(50)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2)
  }

  @Test("of several who could pass something on to who is not linked with its author, one does")
  func passedOn() throws {
    let (bench, links) = try clique(5)
    bench.cut(try #require(links[0][4]))
    bench.pass(1_000)
    let start = bench.transcript.count
    for value in 1...5 as ClosedRange<Int64> {
      try bench.nodes[0].write(value)
      bench.pass(100)
    }
    #expect(bench.nodes[4].holds(bench.nodes[0]) == 6 && copies(to: 4, bench, start) == 5)
    let marks = (1...3).map { DeviceMark(bench.nodes[$0].device) }
    let nearest = try #require(marks.min { $0.isNearer(to: DeviceMark(bench.nodes[4].device), than: $1) })
    let slot = try #require(marks.firstIndex(of: nearest)) + 1
    #expect(bench.said(from: slot, to: 4, since: start).count { $0 == "runs" } == 5)
  }

  @Test("nothing is left to a nearer neighbour who lacks what comes before: he may have it from this node alone")
  func nearerWhoLacks() throws {
    // Node 0 writes; 1 and 2 are linked with it and with 3, which is not.
    let bench = try MeshBench([0, 1, 2, 3])
    let marks = bench.nodes.map { DeviceMark($0.device) }
    let (near, far) = marks[1].isNearer(to: marks[3], than: marks[2]) ? (1, 2) : (2, 1)
    let all = bench.fleet.interest("*")
    bench.nodes[near].deliver(.interestChanged(added: Interest(), removed: all))
    for (a, b) in [(far, near), (0, near), (0, far), (far, 3), (near, 3)] { _ = bench.connected(a, b) }
    for value in 0..<2 as Range<Int64> {
      try bench.nodes[0].write(value)
      bench.pass(3_000)
    }
    try #require(bench.nodes[3].holds(bench.nodes[0]) == 2 && bench.nodes[near].holds(bench.nodes[0]) == 0)

    // All hear that he wants it, and that he wrote as well. What is written then comes to him with all before it.
    bench.nodes[near].deliver(.interestChanged(added: all, removed: Interest()))
    try bench.nodes[near].write(7)
    bench.run(3)
    try bench.nodes[0].write(2)
    bench.run()
    try #require(bench.nodes[near].holds(bench.nodes[0]) == 3 && bench.nodes[far].holds(bench.nodes[0]) == 3)
    bench.pass(100)
    #expect(bench.nodes[3].holds(bench.nodes[0]) == 3)
  }

  @Test("what came over two hops does not go back over two to who is linked with its author")
  func author() throws {
    // 0 – 1 – 2 – 3 in a ring: 2 has what 0 writes from 1 or 3, and both have it from 0.
    let bench = try MeshBench([0, 1, 2, 3])
    for slot in 0..<4 { _ = bench.connected(slot, (slot + 1) % 4) }
    try bench.nodes[0].write(0)
    bench.pass(5_000)
    let start = bench.transcript.count
    for value in 1...5 as ClosedRange<Int64> {
      try bench.nodes[0].write(value)
      bench.pass(200)
    }
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 6)
    #expect(copies(to: 1, bench, start) == 5 && copies(to: 3, bench, start) == 5)
  }

  @Test(
    "what an author does not carry any more, or has lost, is not left to him: who is linked with him gets it at once",
    arguments: [true, false])
  func authorBringsNothing(wantsIt: Bool) throws {
    // Node 4 is what the device of node 0 was before its store was lost; node 3 alone has what it wrote.
    let bench = try MeshBench([0, 1, 2, 3, 0])
    let id = bench.connected(4, 3)
    for value in 0..<3 as Range<Int64> { try bench.nodes[4].write(value) }
    bench.run()
    bench.cut(id)
    let all = bench.fleet.interest("*")
    if !wantsIt { bench.nodes[0].deliver(.interestChanged(added: Interest(), removed: all)) }
    let links = [(0, 1), (0, 2), (1, 2)].map { bench.connected($0.0, $0.1) }
    try bench.nodes[1].write(0)
    bench.pass(3_000)
    try #require(bench.nodes[3].holds(bench.nodes[4]) == 3 && bench.nodes[2].holds(bench.nodes[1]) == 1)
    if !wantsIt {
      // Also while the two compare what else they hold.
      bench.nodes[1].ask(links[0])
      bench.loseMessages()
    }
    _ = bench.connected(3, 1)
    bench.pass(100)
    try #require(bench.nodes[1].holds(bench.nodes[4]) == 3)
    #expect(bench.nodes[2].holds(bench.nodes[4]) == 3)
  }

  @Test(
    "what another brings is left to its author as long as this node has not compared with him what they hold",
    arguments: [true, false])
  func authorUncompared(isLive: Bool) throws {
    let bench = try MeshBench([0, 1, 2, 3])
    let first = bench.connected(0, 3)
    for value in 0..<3 as Range<Int64> { try bench.nodes[0].write(value) }
    bench.run()
    bench.cut(first)
    _ = bench.connected(1, 2)
    try bench.nodes[1].write(0)
    bench.pass(3_000)
    bench.nodes[0].holdsLoads = true
    _ = bench.connected(0, 2)
    let id = bench.connect(0, 1)
    while isLive, bench.nodes[..<2].contains(where: { $0.mesh.sessions[id]?.phase != .live }) { bench.run(1) }
    bench.loseMessages()
    let start = bench.transcript.count
    _ = bench.connected(3, 1)
    bench.pass(100)
    try #require(bench.nodes[1].holds(bench.nodes[0]) == 3)
    #expect(copies(to: 2, bench, start) == 0)
  }

  @Test("where a link breaks with something under way, the others pass it on as soon as they hear of it")
  func broken() throws {
    let (bench, links) = try clique(3)
    let start = bench.transcript.count
    bench.nodes[0].mesh.pause(try #require(links[0][2]))
    try bench.nodes[0].write(1)
    bench.pass(500)
    try #require(bench.nodes[1].holds(bench.nodes[0]) == 2 && bench.nodes[2].holds(bench.nodes[0]) == 1)
    #expect(copies(to: 2, bench, start) == 0, "left to node 0")
    bench.cut(try #require(links[0][2]))
    bench.pass(1_000)
    #expect(copies(to: 2, bench, start) == 0, "it may be back")
    bench.pass(50)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2)
  }

  @Test("what was read while others were to bring the rest waits for the rest, where they are gone meanwhile")
  func brokenDuringLoad() throws {
    let (bench, links) = try clique(3)
    let (gone, slow) = (try #require(links[0][2]), try #require(links[1][2]))
    bench.nodes[0].mesh.pause(gone)
    try bench.nodes[0].write(1)
    bench.pass(500)
    bench.nodes[1].mesh.pause(slow)
    // It has seen what node 0 wrote.
    try bench.nodes[1].write(2)
    bench.nodes[1].holdsLoads = true
    bench.nodes[1].deliver(.writable(slow))
    bench.cut(gone)
    bench.pass(1_000)
    try #require(bench.nodes[1].mesh.sessions[slow]?.sparing?.neighbours == [])
    let start = bench.transcript.count
    bench.nodes[1].holdsLoads = false
    bench.pass(100)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2 && bench.nodes[2].holds(bench.nodes[1]) == 1)
    #expect(copies(to: 2, bench, start) == 2)
  }

  @Test("what others left with a payload under way goes behind it; what is left to them later does not")
  func brokenDuringPayload() throws {
    let (bench, links) = try clique(3)
    let (gone, slow) = (try #require(links[0][2]), try #require(links[1][2]))
    bench.nodes[1].holdsSaid = true
    try bench.nodes[1].write(1, payloadByteCount: 20_000)
    bench.nodes[0].mesh.pause(gone)
    try bench.nodes[0].write(2)
    bench.run()
    bench.cut(gone)
    bench.pass(1_500)
    try #require(bench.nodes[1].mesh.sessions[slow]?.sparing?.neighbours == [])
    try #require(bench.nodes[1].mesh.sessions[slow]?.live?.streams[bench.partition]?.outgoing.isBusy == true)
    // The payload has gone out, and the link takes nothing more for a while.
    bench.nodes[1].handOver(goesOn: false)
    bench.run()
    try #require(bench.nodes[2].holds(bench.nodes[1]) == 1)
    let again = bench.connected(0, 2)
    bench.pass(5_000)
    try #require(bench.nodes[2].holds(bench.nodes[0]) == 2)
    bench.nodes[0].mesh.pause(again)
    try bench.nodes[0].write(3)
    bench.run()
    try #require(bench.nodes[1].holds(bench.nodes[0]) == 3)
    let start = bench.transcript.count
    bench.nodes[1].handOver()
    bench.run()
    #expect(copies(to: 2, bench, start) == 0)
  }

  @Test("what is left while a payload goes out, to those who are still there, stays left to them")
  func leftDuringPayload() throws {
    let (bench, links) = try clique(4)
    let (gone, slow, other) = (try #require(links[0][2]), try #require(links[1][2]), try #require(links[3][2]))
    func stream() -> PeerStream? { bench.nodes[1].mesh.sessions[slow]?.live?.streams[bench.partition] }
    bench.nodes[1].holdsSaid = true
    try bench.nodes[1].write(1, payloadByteCount: 20_000)
    bench.nodes[0].mesh.pause(gone)
    bench.nodes[3].mesh.pause(other)
    try bench.nodes[0].write(2)
    bench.run()
    bench.cut(gone)
    bench.pass(1_500)
    try #require(bench.nodes[1].mesh.sessions[slow]?.sparing?.neighbours == [DeviceMark(bench.nodes[3].device)])
    try bench.nodes[3].write(3)
    bench.run()
    try #require(bench.nodes[1].holds(bench.nodes[3]) == 1 && bench.nodes[2].holds(bench.nodes[3]) == 0)
    try #require(stream()?.outgoing.isBusy == true)
    bench.nodes[1].handOver()
    bench.run()
    #expect(bench.nodes[2].holds(bench.nodes[1]) == 1 && bench.nodes[2].holds(bench.nodes[0]) == 2)
    #expect(bench.nodes[2].holds(bench.nodes[3]) == 0)
    bench.nodes[3].deliver(.writable(other))
    bench.run()
    #expect(bench.nodes[2].holds(bench.nodes[3]) == 1)
  }

  @Test("behind a payload is taken back what the peer has not told to have", arguments: [1, 2, 3] as [UInt64])
  func toldDuringPayload(told: UInt64) throws {
    let bench = try MeshBench([0, 1, 2])
    let (replica, log) = (bench.nodes[0].replica, try payloadRun(bench))
    var stream = PeerStream(bench.name, number: 1, now: bench.now)
    stream.outgoing.beginPayload([log][...])
    stream.outgoing.left.leave(replica, 1, through: 3, .direct)
    stream.outgoing.takeBackLeft(.all)
    var vector = VersionVector()
    vector[replica] = ChainPosition(sequence: told, tip: .zero)
    stream.note(vector, nil)
    if told == 3 { stream.outgoing.left.leave(replica, 4, through: 4, .direct) }
    while stream.outgoing.takeBehindPayload() == nil { _ = stream.outgoing.takePiece(16_384, of: bench.name) }
    stream.outgoing.takeBackBehindPayload()
    #expect((1...5).last { stream.covers(replica, $0) } == (told == 3 ? 4 : told))
  }

  private func payloadRun(_ bench: MeshBench) throws -> LoggedRun {
    try bench.nodes[1].write(1, payloadByteCount: 20_000)
    return try #require(bench.nodes[1].log.last)
  }

  @Test("what comes during a comparison is left to who brought it, and announced to the peer a little later")
  func duringComparison() throws {
    let (bench, links) = try clique(3)
    // Anew, so that all are level and no stream is open.
    for id in [links[0][1], links[0][2], links[1][2]] { bench.cut(try #require(id)) }
    let ids = [bench.connected(0, 1), bench.connected(0, 2), bench.connected(1, 2)]
    bench.pass(3_000)
    func session(at slot: Int) -> LiveSession? { bench.nodes[slot].mesh.sessions[ids[2]]?.live }
    // One of the two asks the other, who has not heard of that yet.
    var asking: Int?
    for _ in 0..<1_000 where asking == nil {
      for slot in 0..<3 { bench.tick(slot, after: 20) }
      asking = (1...2).first { session(at: $0)?.comparison.isUnderWay == true }
      if asking == nil { bench.run() }
    }
    let (node, peer) = (try #require(asking), 3 - (try #require(asking)))
    try #require(session(at: node)?.streams.isEmpty == true)
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    bench.run()
    try #require(session(at: node)?.comparison.isUnderWay == false && bench.nodes[peer].holds(bench.nodes[0]) == 2)
    #expect(copies(to: peer, bench, start) == 1)
    bench.pass(2_500)
    #expect(bench.said(from: node, to: peer, since: start).contains("have"))
  }

  @Test("what was taken is announced before a broken link is told of, and not sent once more")
  func announcedFirst() throws {
    let (bench, links) = try clique(3)
    try bench.nodes[0].write(1)
    bench.run()
    let start = bench.transcript.count
    bench.cut(try #require(links[0][2]))
    bench.pass(1_000)
    #expect(bench.said(from: 2, to: 1, since: start).prefix(2) == ["have", "neighbours"])
    bench.pass(2_000)
    #expect(copies(to: 1, bench, start) == 0 && copies(to: 2, bench, start) == 0)
  }

  @Test(
    "what a neighbour was to bring and did not comes within a second from who has it and is told so, and is asked of others in three",
    arguments: [true, false])
  func stuck(isTold: Bool) throws {
    let (bench, links) = try clique(3, formats: isTold ? [:] : [1: withoutChoices])
    bench.nodes[0].mesh.pause(try #require(links[0][2]))
    try bench.nodes[0].write(1)
    bench.run()
    bench.pass(1_000)
    bench.pass(1_000)
    try #require(bench.said(from: 1, to: 2).last == "have" && bench.nodes[2].holds(bench.nodes[0]) == 1)
    bench.pass(isTold ? 900 : 2_900)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 1)
    bench.pass(400)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2)
  }

  /// A build that does not know who is to push.
  private var withoutChoices: KnownFormats {
    var formats = KnownFormats.all
    formats.features &= ~KnownFormats.Feature.pushChoice
    return formats
  }

  @Test("so is what was to be brought while others go on writing: chains are looked at every three seconds")
  func stuckAmongWriters() throws {
    let (bench, links) = try clique(4, formats: [1: withoutChoices, 2: withoutChoices, 3: withoutChoices])
    for other in 2...3 { bench.nodes[0].mesh.pause(try #require(links[0][other])) }
    try bench.nodes[0].write(1)
    bench.run()
    func write(_ values: Range<Int64>) throws {
      for value in values {
        try bench.nodes[3].write(10 + value)
        bench.run()
        bench.pass(500)
      }
    }
    try write(0..<6)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 1 && bench.nodes[2].holds(bench.nodes[3]) == 6)
    try write(6..<20)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2 && bench.nodes[2].holds(bench.nodes[3]) == 20)
  }

  @Test("a change that comes ahead of what it stands on waits for it, and ends no session")
  func ahead() throws {
    let (bench, links) = try clique(3)
    let slow = try #require(links[0][2])
    bench.nodes[0].mesh.pause(slow)
    try bench.nodes[0].write(1)
    bench.run()
    try bench.nodes[1].write(2)
    bench.run()
    #expect(bench.nodes[2].holds(bench.nodes[1]) == 0 && bench.nodes[2].mesh.footprint.postponedBytes > 0)
    let start = bench.transcript.count
    bench.nodes[0].deliver(.writable(slow))
    bench.run()
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2 && bench.nodes[2].holds(bench.nodes[1]) == 1)
    #expect(bench.nodes[2].mesh.footprint.postponedBytes == 0)
    bench.pass(5_000)
    #expect(copies(to: 2, bench, start) == 1 && bench.nodes[2].mesh.sessions.count == 2)
  }

  @Test("what came ahead is asked for again with what it stands on, where nobody brings that")
  func aheadAlone() throws {
    let (bench, links) = try clique(3)
    bench.nodes[0].mesh.pause(try #require(links[0][2]))
    try bench.nodes[0].write(1)
    bench.run()
    try bench.nodes[1].write(2)
    bench.run()
    bench.pass(4_000)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2 && bench.nodes[2].holds(bench.nodes[1]) == 1)
    #expect(bench.nodes[2].mesh.footprint.postponedBytes == 0)
  }

  @Test("towards a build that tells no neighbours all is passed on and announced as before")
  func earlier() throws {
    let (bench, links) = try clique(3, formats: [2: TestBuild.earlier.formats])
    let id = try #require(links[1][2])
    #expect(bench.nodes[1].mesh.sessions[id]?.sparing == nil && bench.nodes[2].mesh.sessions[id]?.sparing == nil)
    #expect(!bench.said(from: 1, to: 2).contains("neighbours") && !bench.said(from: 2, to: 1).contains("neighbours"))
    bench.nodes[0].mesh.pause(try #require(links[0][2]))
    let start = bench.transcript.count
    try bench.nodes[0].write(1)
    bench.run()
    #expect(bench.said(from: 1, to: 2, since: start).first == "have", "at once")
    bench.pass(50)
    #expect(bench.nodes[2].holds(bench.nodes[0]) == 2)
  }

  @Test("of a peer no more neighbours are kept than there is room for, and of partitions no more than are looked after")
  func bounds() throws {
    var sparing = CopySparing()
    for first in stride(from: UInt64(0), to: 3_000, by: 1_000) {
      sparing.hear(NeighbourNews(added: Set((first..<first + 1_000).map { DeviceMark(word: $0) })))
    }
    #expect(sparing.neighbours.count == NeighbourNews.limit)
    let now = MonotonicTime(milliseconds: 5)
    func id(_ number: UInt64) -> PartitionID { PartitionID(Digest(words: (number, 0, 0, 0))) }
    var known = VersionVector()
    for number in 0...UInt64(CopySparing.chainLimit) {
      known[ReplicaID(high: 0, low: number)] = ChainPosition(sequence: 1, tip: .zero)
    }
    let stream = PeerStream(try PartitionName("agency=x"), known: known, number: 1, now: now)
    for number in 0...UInt64(CopySparing.partitionLimit) { sparing.noteBehind(id(number), stream, nil, now) }
    #expect(sparing.behind(for: 0, now).count == CopySparing.partitionLimit)
  }
}
