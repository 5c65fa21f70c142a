import Engine
import Replication
import Testing
import Wire

@testable import Simulation

/// Each shows the onlooker one more commit of a node, as if its store had taken it.
@Suite("The onlooker sees what no store should take") struct StoredRunTests {
  private let world: World
  private let keeper: NodeProcess
  /// The last run of the other node.
  private let last: KnownRun
  private let author: FakeKey

  init() throws {
    var options = SimulationOptions()
    (options.nodes, options.partitions, options.faults) = (2...2, 1...1, [])
    (options.troubledMilliseconds, options.usesDisk) = (6_000, false)
    world = World(seed: 5, options)
    try #require(world.run().violations.isEmpty)
    keeper = try #require(world.nodes[0].process)
    author = world.nodes[1].key
    let partition = try #require(keeper.node.directory.book.partitions.values.first)
    let runs = partition.runs.values.joined().filter { [author] in $0.isSigned(by: author.publicKey) }
    last = try #require(runs.max { $0.last < $1.last })
  }

  private func next(signedBy key: FakeKey, context: VersionVector? = nil) throws -> ObservedCommit {
    let (chain, hash) = (last.decoded.chain, FakeCryptography.hash)
    var builder = RunBuilder(
      chain: chain, after: last.last, hashBefore: last.decoded.hashAtLast, context: last.context, hash: hash)
    let write = DocumentWrite(collection: "c", id: .int(99), kind: .create, generation: 1, operations: [])
    let payload = PayloadEncoder.encode([write], dot: builder.nextDot)
    let header = ChangeHeader(
      sequence: builder.nextDot.sequence, timestamp: .zero, wall: WallTime(milliseconds: 0), payloadByteCount: 0,
      payloadHash: .zero, keyHashes: [])
    let change = try Change.plain(header, payload: payload, chain: chain, hash).change
    builder.append(
      payload: payload, keyHashes: change.header.keyHashes, timestamp: .zero, wall: WallTime(milliseconds: 0))
    let run = builder.close(sign: key.sign)
    let appended = AppendedRun(
      first: run.record.first, last: run.record.last, context: context ?? last.context, body: RunCodec.encode(run)[...])
    var commit = ObservedCommit()
    commit.appended = [ObservedCommit.Appended(chain: chain, run: appended)]
    return commit
  }

  private func violations(after commits: ObservedCommit...) -> [String] {
    for commit in commits { world.oracle.committed(commit, by: keeper) }
    return world.report.violations.map(\.rule)
  }

  private func forget(_ isForgotten: (Statement.Body) -> Bool) {
    keeper.node.directory.book.statements = keeper.node.directory.book.statements.filter { !isForgotten($0.value.body) }
  }

  @Test("the next run of another node is none of it")
  func good() throws { #expect(violations(after: try next(signedBy: author)) == []) }

  @Test("a run that another key signed breaks I12")
  func forged() throws { #expect(violations(after: try next(signedBy: keeper.node.key)) == ["I12"]) }

  @Test("a good run whose replica is declared elsewhere, not where it is stored, breaks I12")
  func undeclared() throws {
    forget { if case .replica = $0 { true } else { false } }
    #expect(violations(after: try next(signedBy: author)) == ["I12"])
  }

  @Test("a run that no grant at its node ever allowed breaks I10, and its keeper may not carry it")
  func withoutRight() throws {
    forget { if case .grant = $0 { true } else { false } }
    // What root said besides goes on as if the grants had never been.
    var last: Statement?
    let root = keeper.node.directory.book.statements.values.filter { $0.issuer == world.fleet.root.publicKey }
    for said in root.sorted(by: { $0.sequence < $1.sequence }) {
      last = Statement(
        fleet: said.fleet, issuer: said.issuer, sequence: (last?.sequence ?? 0) + 1, previous: last?.id,
        body: said.body, signature: said.signature, id: said.id, encoded: said.encoded)
      keeper.node.directory.book.statements[said.id] = last
    }
    #expect(violations(after: try next(signedBy: author)) == ["I10", "C7"])
  }

  @Test("a run above what its author may write is kept, but not by who may not carry it", arguments: [true, false])
  func lowered(mayCarry: Bool) throws {
    let made = world.fleet.grant(mayCarry ? .carry : .none, Fleet.Register(subject: .everyone, pattern: "*"), ends: [])
    let grant = try #require(made?.last)
    keeper.node.directory.book.statements[grant.id] = grant
    #expect(violations(after: try next(signedBy: author)) == (mayCarry ? [] : ["C7"]))
  }

  @Test("a context that the author did not hash is no part of the run")
  func falseContext() throws {
    var context = last.context
    context[ReplicaID(high: 1, low: 1)] = ChainPosition(sequence: 1, tip: TipHash(high: 1, low: 1))
    #expect(violations(after: try next(signedBy: author, context: context)).contains("store"))
  }

  @Test("a run that is there already breaks I5")
  func twice() throws {
    let commit = try next(signedBy: author)
    #expect(violations(after: commit, commit) == ["I5"])
  }

  @Test("a statement that its issuer did not sign breaks I12", arguments: [true, false])
  func statement(isGood: Bool) throws {
    let key = isGood ? world.fleet.root : author
    let body = Statement.Body.rule(Statement.Rule(key: "agency"))
    let honest = try #require(key.statement(world.fleet.id, body))
    var encoded = honest.encoded
    if !isGood { encoded[encoded.count - 1] ^= 1 }
    var commit = ObservedCommit()
    commit.statements = [
      Statement(
        fleet: honest.fleet, issuer: honest.issuer, sequence: honest.sequence, previous: nil, body: body,
        signature: honest.signature,
        id: honest.id, encoded: encoded)
    ]
    #expect(violations(after: commit) == (isGood ? [] : ["I12"]))
  }
}
