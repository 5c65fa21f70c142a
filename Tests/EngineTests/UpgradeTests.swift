import Identity
import Replication
import Testing

@testable import Engine

/// A store that an earlier build has written, under one that understands more.
@Suite struct UpgradeTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  private static let codec = PayloadCodec(rawValue: 200)
  private static let critical = ChangeExtension(type: 0x9000, content: [1])

  /// What a later build knows of changes; it writes in every form by turns.
  private static let later: KnownFormats = {
    var formats = KnownFormats.all
    (formats.codecs, formats.criticalExtensions) = ([codec], [critical.type])
    formats.written = [
      .init(extensions: [critical]), .init(), .init(), .init(codec: codec),
      .init(extensions: [ChangeExtension(type: 7, content: [2])]),
    ]
    return formats
  }()

  private func knowing(codec: Bool, critical: Bool) -> KnownFormats {
    var formats = KnownFormats.all
    if codec { formats.codecs = [Self.codec] }
    if critical { formats.criticalExtensions = [Self.critical.type] }
    return formats
  }

  /// All documents as they lie in the store.
  private func documents(_ bench: EngineBench, _ slot: Int) throws -> [Text: [UInt8]] {
    let node = bench.nodes[slot]
    var found: [Text: [UInt8]] = [:]
    for id in Self.ids {
      let key = DocumentKey(collection: Put.collection, id: .string(id))
      found[id] = try node.store.document(key, in: node.id(of: room))?.state
    }
    return found
  }

  private static let ids = ["large"] + (0..<9).map { Text("\($0)") }

  /// Node 0 writes as a later build does, 1 has always known all of it, 2 knows what it is told to.
  private func bench(_ formats: KnownFormats) throws -> EngineBench {
    let bench = try EngineBench(1)
    try bench.restart(0, formats: Self.later)
    try bench.addMember(formats: Self.later)
    try bench.addMember(formats: formats)
    for node in bench.nodes { try node.subscribe("room=*") }
    for number in 0..<9 { try bench.nodes[0].write(room, Put(Self.ids[number + 1], Int64(number))) }
    try bench.nodes[0].write(room, Put("large", byteCount: 40_000))
    for number in 0..<9 { try bench.nodes[0].write(room, Put(Self.ids[number + 1], Int64(100 + number))) }
    return bench
  }

  @Test(
    "what was held for a codec or an extension counts under a build that knows it, and its documents are built",
    arguments: [(codec: false, critical: false), (true, false), (false, true)])
  func changes(codec: Bool, critical: Bool) throws {
    let bench = try bench(knowing(codec: codec, critical: critical))
    let sessions = [bench.meet(1, 0), bench.meet(2, 0), bench.meet(2, 1)]
    for session in sessions { #expect(bench.nodes.contains { $0.state.mesh.sessions[session] != nil }) }
    #expect(bench.nodes[2].received(room) == bench.nodes[1].received(room))
    // Up to the first in a form that it does not know.
    #expect(bench.nodes[2].accepted(room).entries.values.map(\.sequence) == [codec ? 4 : 2])
    #expect(try documents(bench, 2).count == (codec ? 4 : 2))

    try bench.restart(2, formats: Self.later)
    bench.nodes[2].engine.turn([])
    #expect(bench.nodes[2].accepted(room) == bench.nodes[1].accepted(room))
    #expect(try documents(bench, 2) == documents(bench, 1) && documents(bench, 1).count == 10)
    #expect(try bench.nodes[2].store.ownFacts().understanding == Self.later.understanding)
    // Once: a start under the same build has nothing to do.
    try bench.restart(2, formats: Self.later)
    #expect(bench.nodes[2].state.moved.isEmpty)
    // And further as any other.
    try bench.nodes[0].write(room, Put("0", 7))
    bench.meet(2, 0)
    #expect(try documents(bench, 2) == documents(bench, 0))
  }

  @Test("a first transaction that fails is tried again, and until then nothing says that it is done")
  func failed() throws {
    let bench = try bench(.all)
    for slot in [1, 2] { bench.meet(slot, 0) }
    try bench.restart(2, formats: Self.later)
    try bench.nodes[2].refuse("INSERT", on: "documents")
    bench.nodes[2].engine.turn([])
    #expect(try documents(bench, 2).count == 2)
    #expect(try bench.nodes[2].store.ownFacts().understanding == KnownFormats.all.understanding)
    try bench.nodes[2].allow("documents")
    bench.nodes[2].engine.turn([])
    #expect(try documents(bench, 2).count == 2, "not at every turn")
    bench.advance(NodeEngine.movedAgainMilliseconds)
    #expect(try documents(bench, 2) == documents(bench, 1))
  }

  enum Lack: CaseIterable { case kind, shape }

  @Test("a statement that is understood now moves what its author's changes come to", arguments: Lack.allCases)
  func statements(lack: Lack) throws {
    var formats = KnownFormats.all
    switch lack {
    case .kind: formats.statementKinds.remove(.end)
    case .shape: formats.grantSubjects.remove(.user)
    }
    let bench = try EngineBench(2)
    let old = try bench.addMember(formats: formats)
    let author = try bench.addMember()
    for node in bench.nodes { try node.subscribe("room=*") }
    func allMeet() { for slot in [0, 1, old] { bench.cut(bench.meet(author, slot)) } }
    try bench.nodes[author].write(room, Put("0"))
    allMeet()
    let chains = bench.nodes[1].accepted(room).sorted.map { Statement.ChainEnd(replica: $0, position: $1) }
    let ends = [Statement.PartitionEnds(partition: room.text, chains: chains)]
    try bench.nodes[author].write(room, Put("1"))
    allMeet()

    let authority = bench.nodes[1].state.mesh.authority
    var said: [Statement] = []
    switch lack {
    case .kind:
      let member = try #require(authority.member(of: bench.nodes[author].key.publicKey))
      let listing = Statement.Listing(ends: ends, tips: authority.tips(of: bench.nodes[author].key.publicKey))
      said.append(
        try bench.statement(
          .end(Statement.End(reason: .compromised, target: .membership(member.id), listing: listing))))
    case .shape:
      said.append(try bench.grant(.read, ends: ends))
      let grant = Statement.Grant(subject: .user("user"), level: .write, pattern: "*")
      said.append(try bench.statement(.grant(grant)))
    }
    for statement in said { bench.nodes[0].engine.turn([.call { $0.add([statement]) }]) }
    for slot in [1, old] { bench.cut(bench.meet(slot, 0)) }
    bench.cut(bench.meet(old, 1))
    #expect(try documents(bench, old) != documents(bench, 1), "\(lack): the difference is what this is about")

    try bench.restart(old)
    bench.nodes[old].engine.turn([])
    #expect(bench.nodes[old].accepted(room) == bench.nodes[1].accepted(room))
    #expect(try documents(bench, old) == documents(bench, 1))
  }
}
