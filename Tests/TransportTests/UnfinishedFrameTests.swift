import Replication
import Testing

@testable import Transport

/// Peers that send most of a large frame, and stop.
@Suite(.serialized) struct UnfinishedFrameTests {
  private static let limit = 1_000_000
  private static let most = 240_000

  /// An authenticated peer that has sent so much of a frame of 256 KiB.
  private func stopped(_ node: Node, seed: UInt8, byteCount: Int = most) throws -> TLSClient {
    let before = node.recorder.now.opened.count
    let client = try TLSClient(to: node, seed: seed)
    let opened = try #require(node.recorder.wait { $0.opened.dropFirst(before).first })
    node.transport.authenticate(opened.id)
    client.write([0, 4, 0, 0])
    for start in stride(from: 0, to: byteCount, by: 16_000) {
      client.write([UInt8](repeating: 7, count: min(16_000, byteCount - start)))
    }
    return client
  }

  @Test("of many the memory is bounded: who holds most of a frame goes, and honest peers go on meanwhile")
  func bounded() throws {
    let node = try Node(seed: 1) { $0.unfinishedByteLimit = UnfinishedFrameTests.limit }
    let honest = try Node(seed: 2, listening: false)
    let pair = try #require(honest.connectAuthenticated(to: node))
    var clients: [TLSClient] = []
    for seed in 10..<30 as Range<UInt8> {
      clients.append(try stopped(node, seed: seed))
      // Read by now: otherwise the next one might hold the most while it writes.
      let held = min(clients.count, 4) * UnfinishedFrameTests.most
      try #require(node.recorder.wait { $0.unfinished.now == held })
    }
    #expect(node.recorder.wait { $0.closed.values.filter { $0 == .unfinishedFrames }.count == 16 })
    #expect(node.recorder.wait { $0.unfinished.now == 4 * UnfinishedFrameTests.most })
    #expect(node.recorder.now.unfinished.most <= UnfinishedFrameTests.limit + IOLoop.recordByteCount)
    #expect(node.transport.statistics.unfinishedFrames == 16)
    for number in 1...20 as ClosedRange<UInt8> {
      #expect(honest.transport.send(pair.here.id, [UInt8](repeating: number, count: 200_000)) == .queued)
      #expect(node.recorder.wait { $0.frames[pair.there.id]?.last?.first == number })
    }
    #expect(node.recorder.now.closed[pair.there.id] == nil)
    withExtendedLifetime(clients) {}
  }

  @Test("what a peer had here of a frame is no longer counted when the frame is whole, or the peer has gone")
  func givenBack() throws {
    let node = try Node(seed: 1)
    var client: TLSClient? = try stopped(node, seed: 10)
    #expect(node.recorder.wait { $0.unfinished.now == UnfinishedFrameTests.most })
    for _ in 0..<2 { client?.write([UInt8](repeating: 7, count: 11_072)) }
    #expect(node.recorder.wait { $0.frames.values.contains { $0.first?.count == 262_144 } && $0.unfinished.now == 0 })
    client = try stopped(node, seed: 11, byteCount: 100_000)
    #expect(node.recorder.wait { $0.unfinished.now == 100_000 })
    client = nil
    #expect(node.recorder.wait { $0.unfinished.now == 0 })
  }
}
