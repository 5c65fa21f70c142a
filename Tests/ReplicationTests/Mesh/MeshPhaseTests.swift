import Testing

@testable import Replication
@testable import Simulation

@Suite("Mesh: what may be said in which phase") struct MeshPhaseTests {
  /// The phases of a session, by what they await.
  enum Stage: CaseIterable { case hello, credentials, joining, statements, interest, live }

  /// A listener, node 1, whose session has reached a phase; what the dialler said later is lost.
  private func bench(_ stage: Stage) throws -> (MeshBench, SessionID) {
    let bench = try MeshBench([0, 1], wants: ["*", stage == .interest ? "agency=*" : "*"])
    if stage == .statements {
      let late = try #require(bench.state(.rule(Statement.Rule(key: "x"))))
      bench.nodes[1].deliver(.statementsStored([late]))
    }
    let id = bench.connect(0, 1)
    switch stage {
    case .hello: break
    case .credentials:
      bench.run(1)
      bench.nodes[1].mesh.sessions[id]?.state = .handshake(.unknown(Greeting(), early: nil))
      bench.nodes[1].mesh.sessions[id]?.live = nil
    case .joining: bench.nodes[1].receive(.joinRequest(try MeshJoiningTests.request(bench, id)), on: id)
    case .statements, .interest: bench.run(1)
    case .live: bench.run()
    }
    bench.loseMessages()
    try #require(bench.nodes[1].mesh.sessions[id] != nil)
    return (bench, id)
  }

  private func samples(_ bench: MeshBench) -> [String: Message] {
    let vector = PartitionVector(name: bench.name, vector: VersionVector())
    let hello = bench.messages(from: 0, to: 1).first { if case .hello = $0 { true } else { false } }
    let piece = PayloadPiece(
      name: bench.name, stream: 0, hash: .zero, total: 20_000, offset: 0,
      bytes: [UInt8](repeating: 1, count: 20_000)[...])
    var samples: [String: Message] = [
      "joinRefused": .joinRefused(.busy), "joinAccepted": .joinAccepted(JoinAcceptance()),
      "credentials": .credentials([]),
      "credentialRequest": .credentialRequest(
        fleetProof: bench.fleetProof(SessionID(rawValue: 1)).proof(ofDialer: true)),
      "statementSet": .statementSet(StatementSet(scope: "", .tips(listed: 0, []))), "statements": .statements([]),
      "statementsComplete": .statementsComplete(), "interestRequest": .interestRequest,
      "interest": .interest(Interest()), "interestChange": .interestChange(added: Interest(), removed: Interest()),
      "summary": .summary(Summary(1, .digest(1))),
      "vectors": .vectors([vector]), "pull": .pull(stream: 1, vector), "have": .have(vector),
      "runs": .runs(RunBatch(name: bench.name, stream: 0, entries: [])), "payloadPiece": .payloadPiece(piece),
      "chainProbe": .chainProbe(
        ChainProbe(name: bench.name, replica: bench.nodes[0].replica, positions: [], wantsReply: false)),
      "pushChoice": .pushChoice(PushChoice(bench.name, eager: [bench.nodes[0].replica])),
    ]
    samples["hello"] = hello
    return samples
  }

  private static let lawful: [Stage: Set<String>] = [
    .hello: ["hello"], .credentials: ["credentials"], .joining: [],
    .statements: [
      "credentialRequest", "statementSet", "statements", "interestRequest", "interest", "interestChange", "summary",
    ],
    .interest: ["statements", "interestRequest", "interest", "interestChange", "summary", "vectors", "have"],
    .live: [
      "statements", "interestRequest", "interest", "interestChange", "summary", "vectors", "pull", "payloadPiece",
      "have", "chainProbe", "pushChoice",
    ],
  ]

  @Test("a message out of turn ends the session with a word, one in its turn does not", arguments: Stage.allCases)
  func outOfTurn(stage: Stage) throws {
    let names = samples(try bench(stage).0).keys.sorted()
    #expect(names.count == 19)
    for name in names {
      let (bench, id) = try bench(stage)
      let message = try #require(samples(bench)[name])
      bench.nodes[1].deliver(.received(id, message))
      let isLawful = Self.lawful[stage]?.contains(name) == true
      #expect((bench.nodes[1].mesh.sessions[id] != nil) == isLawful, "\(name) in \(stage)")
      #expect(bench.nodes[1].notes.contains(.peerRefused("a message out of turn")) != isLawful, "\(name) in \(stage)")
      #expect((bench.messages(from: 1, to: 0).last == .goodbye(.protocolError)) != isLawful, "\(name) in \(stage)")
    }
  }

  @Test("a ping is answered, and a goodbye closes, in every phase", arguments: Stage.allCases)
  func always(stage: Stage) throws {
    let (bench, id) = try bench(stage)
    bench.nodes[1].receive(.ping(nonce: 77), on: id)
    #expect(bench.messages(from: 1, to: 0).last == .pong(nonce: 77))
    bench.nodes[1].receive(.pong(nonce: 78), on: id)
    #expect(bench.nodes[1].mesh.sessions[id] != nil)
    let count = bench.transcript.count
    bench.nodes[1].receive(.goodbye(.stopping), on: id)
    #expect(bench.nodes[1].mesh.sessions[id] == nil && bench.transcript.count == count, "closed without an answer")
  }

  @Test("an interest that is asked for is told in every phase that knows the peer", arguments: Stage.allCases)
  func asked(stage: Stage) throws {
    guard Self.lawful[stage]?.contains("interestRequest") == true else { return }
    let (bench, id) = try bench(stage)
    bench.nodes[1].receive(.interestRequest, on: id)
    #expect(bench.messages(from: 1, to: 0).last == .interest(bench.nodes[1].mesh.interest))
  }

  @Test("runs count only on a live session", arguments: Stage.allCases)
  func runs(stage: Stage) throws {
    let (bench, id) = try bench(stage)
    let run = try bench.nodes[0].write(1)
    let entry = RunBatch.Entry(context: .full(run.context), encoded: run.encoded)
    bench.nodes[1].receive(.runs(RunBatch(name: bench.name, stream: 0, entries: [entry])), on: id)
    #expect((bench.nodes[1].log.count == 1) == (stage == .live))
  }

  @Test("a session closes in every phase, and what is said on it afterwards is nothing", arguments: Stage.allCases)
  func closed(stage: Stage) throws {
    let (bench, id) = try bench(stage)
    bench.nodes[1].deliver(.closed(id))
    let count = bench.transcript.count
    #expect(bench.nodes[1].mesh.sessions.isEmpty)
    bench.nodes[1].receive(.ping(nonce: 1), on: id)
    bench.nodes[1].deliver(.violated(id, "late"))
    bench.nodes[1].deliver(.joinJudged(id, .accepted(JoinAcceptance())))
    bench.nodes[1].deliver(.writable(id))
    #expect(bench.transcript.count == count && bench.nodes[1].mesh.sessions.isEmpty)
  }

  @Test("a handshake has ten seconds, whoever is awaited; a live session has no such end", arguments: Stage.allCases)
  func deadline(stage: Stage) throws {
    let (bench, id) = try bench(stage)
    bench.tick(1, after: 10_000)
    #expect(bench.nodes[1].mesh.sessions[id] != nil)
    bench.tick(1, after: 1)
    #expect((bench.nodes[1].mesh.sessions[id] != nil) == (stage == .live))
    #expect(bench.nodes[1].notes.contains(.peerRefused("a handshake without end")) == (stage != .live))
  }

  @Test("what is no message of the protocol ends the session", arguments: Stage.allCases)
  func violation(stage: Stage) throws {
    let (bench, id) = try bench(stage)
    bench.nodes[1].deliver(.violated(id, "no message"))
    #expect(bench.nodes[1].mesh.sessions[id] == nil)
    #expect(bench.messages(from: 1, to: 0).last == .goodbye(.protocolError))
  }
}
