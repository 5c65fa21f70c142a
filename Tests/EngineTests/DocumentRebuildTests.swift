import Identity
import Replication
import Testing
import Wire

@testable import Engine

@Suite struct DocumentRebuildTests {
  private let room: PartitionName
  private let node: BenchNode
  private let bench: EngineBench

  init() throws {
    room = try PartitionName("room=1")
    bench = try EngineBench()
    node = bench.nodes[0]
    try node.write(room, Put("own"))
  }

  private func edit(_ id: Text, _ path: [PathSegment]) -> DocumentWrite {
    DocumentWrite(
      collection: Put.collection, id: .string(id), kind: .edit, generation: 1,
      operations: [Operation(.set, path, value: .int(2))])
  }

  /// A run of another chain with one change for each of the writes, as it would come from a peer.
  private func take(_ writes: [DocumentWrite], having own: Dot) throws {
    let (identity, partition) = (node.state.identity, node.id(of: room))
    let chain = ChainIdentity(fleet: identity.fleet, partition: partition, replica: ReplicaID(high: 5, low: 5))
    let hash = identity.cryptography.hash
    var builder = RunBuilder(
      chain: chain, after: 0, hashBefore: chain.genesis(hash),
      context: VersionVector([own.replica: ChainPosition(sequence: own.sequence, tip: .zero)]), hash: hash)
    for write in writes {
      builder.append(
        payload: PayloadEncoder.encode([write], dot: builder.nextDot),
        keyHashes: [DocumentKey(collection: write.collection, id: write.id).hash(in: partition, hash)],
        timestamp: HybridTimestamp(rawValue: 1), wall: WallTime(milliseconds: 1))
    }
    let run = builder.close(sign: identity.cryptography.sign)
    let learned = node.state.mesh.learnOwn(run, in: partition, signer: identity.device)
    _ = try #require(learned)
    try node.store.transact(isBacklog: false) { transaction in
      _ = try transaction.append(
        AppendedRun(
          first: run.record.first, last: run.record.last, context: run.record.context, body: RunCodec.encode(run)[...]),
        to: chain, genesis: chain.genesis(hash))
    }
  }

  @Test("where changes have other kin, documents are built anew that name list elements by their dots, and no others")
  func namedElsewhere() throws {
    let own = Dot(replica: try #require(node.state.own.replica?.id), sequence: 1)
    func element(_ dot: Dot) -> PathSegment { .element(ListElement(position: [1], dot: dot)) }
    let first = Dot(replica: ReplicaID(high: 5, low: 5), sequence: 1)
    try take(
      [
        edit("plain", [.key("list")]), edit("named", [.key("list"), element(own), .key("n")]),
        edit("of its chain", [.key("list"), element(first)]),
      ], having: own)
    func rebuilt(_ dots: Set<Dot>) throws -> Set<Value> {
      var change = LogChange()
      change.regrouped = dots
      let partition = try #require(node.state.mesh.partitions[node.id(of: room)])
      let rebuild = DocumentRebuild(reader: RunReader(node.state.identity), partition: partition)
      let changed = try node.store.transact(isBacklog: false) {
        try rebuild.run(on: try rebuild.touched(by: [change], $0).documents, $0)
      }
      var ids: Set<Value> = []
      changed.forEach { _, id in ids.formUnion(Value(canonicalID: Array(id)).map { [$0] } ?? []) }
      return ids
    }
    // What the change itself writes is touched, too.
    #expect(try rebuilt([own]) == [.string("own"), .string("named")])
    #expect(try rebuilt([first]) == [.string("of its chain")], "nothing of that chain is accepted")
    #expect(try rebuilt([]) == [])
  }

  @Test("in doubt what comes behind a change that had seen it is taken for seen")
  func seenAheadInDoubt() throws {
    let bench = try EngineBench(3)
    try bench.restart(1, formats: TestBuild.earlier.formats)
    for node in bench.nodes { try node.subscribe("room=*") }
    let (author, late, other) = (bench.nodes[0], bench.nodes[1], bench.nodes[2])
    try author.write(room, Put("seen"))
    bench.cut(bench.meet(0, 2))
    try other.write(room, Put("seen", 2))
    let unknown = try bench.statement(.rule(Statement.Rule(key: "agency")))
    let statements = [unknown] + Array(other.state.mesh.authority.fleetStatements)
    late.engine.turn([.call { $0.add(statements) }])
    try #require(late.state.mesh.authority.isInDoubt)
    for writer in [other, author] {
      let replica = try #require(writer.state.own.replica?.id)
      try late.take(runsOf: replica, of: writer, in: room)
      #expect(late.accepted(room).sequence(of: replica) > 0)
    }
    #expect(try late.stored(room, "seen") == other.stored(room, "seen"))
  }
}
