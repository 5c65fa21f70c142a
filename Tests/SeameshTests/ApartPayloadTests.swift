import Identity
import Replication
import TestSupport
import Testing
import Wire

@testable import Engine
@testable import Seamesh
@testable import Transport

@Suite(.serialized) struct ApartPayloadTests {
  @Test("a message whose runs name more payload than belongs in memory together breaks the protocol")
  func many() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let partition = try PartitionName("room=1")
    for change in 0..<5 {
      let requests = (0..<4).map { index in
        DocumentRequest(
          collection: "c", id: .string(Text("\(change)-\(index)")),
          action: .put(body: body(["n": .bytes([UInt8](repeating: 7, count: 900_000))])))
      }
      _ = try node.write(partition, requests)
    }
    let id = partition.id(fleet: node.endpoints.fleet, hash: SHA256.hash)
    let runs = try node.engine.ask { engine -> [LoggedRun] in
      engine.attempt([]) {
        try LogReader(engine.state).runs(id, lackedBy: VersionVector(), byteLimit: .max).runs
      }
    }
    #expect(runs.count == 5)
    #expect(try isKept(Array(runs.prefix(4)), partition, node, session: 1_000_001))
    #expect(try !isKept(runs, partition, node, session: 1_000_002))
  }

  /// Whether a session outlives the message.
  private func isKept(
    _ runs: [LoggedRun], _ partition: PartitionName, _ node: Node, session number: UInt64
  ) throws -> Bool {
    let entries = runs.map { RunBatch.Entry(context: .full($0.context), encoded: $0.encoded) }
    let frame = MessageCodec.encode(.runs(RunBatch(name: partition, stream: 0, entries: entries)))
    let id = SessionID(rawValue: number)
    node.engine.inbox.put(.event(.opened(link(id))))
    let intake = FrameIntake(
      FrameDecoder(fleet: node.endpoints.fleet, EngineIdentity(node.files).cryptography),
      authority: CurrentAuthority(try node.engine.ask { $0.state.mesh.authority }), inbox: node.engine.inbox
    ) { _ in }
    intake.received(ConnectionID(number: number), frame: frame)
    // What users ask goes before what peers sent: that it was taken in shows by what comes behind it.
    let behind = SessionID(rawValue: number + 1_000)
    node.engine.inbox.put(.event(.opened(link(behind))))
    try eventually { try node.engine.ask { $0.state.mesh.sessions[behind] != nil } }
    return try node.engine.ask { $0.state.mesh.sessions[id] != nil }
  }

  private func link(_ id: SessionID) -> OpenedLink {
    OpenedLink(
      session: id, dialTag: nil, remote: SocketAddress(.ipv4(0x7f00_0001), port: 1), peerKey: SigningKey().publicKey,
      exporter: .zero)
  }
}
