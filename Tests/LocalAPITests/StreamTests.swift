import LocalAPITestSupport
import Replication
import Seamesh
import Synchronization
import Testing

@testable import LocalAPI

@Suite("Answers that are made while they are sent")
struct StreamTests {
  private func text(_ chunk: StreamChunk) -> String {
    switch chunk {
    case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
    case .waiting: "waiting"
    case .end: "end"
    case .broken: "broken"
    }
  }

  @Test("chunks come out in their order, and then the end or the break")
  func order() {
    let (whole, broken) = (ChunkPipe(), ChunkPipe())
    for pipe in [whole, broken] { for letter in "abc".utf8 { #expect(pipe.write([letter])) } }
    whole.finish(.complete)
    broken.finish(.broken(NodeError(.failed, "the disk")))
    #expect((0..<4).map { _ in text(whole.next(milliseconds: 0)) } == ["a", "b", "c", "end"])
    #expect((0..<4).map { _ in text(broken.next(milliseconds: 0)) } == ["a", "b", "c", "broken"])
    #expect(whole.failure == nil && broken.failure?.message == "the disk")
    #expect(text(ChunkPipe().next(milliseconds: 1)) == "waiting")
  }

  @Test("a producer is never more than a few chunks ahead, and goes on when one is taken")
  func bounded() {
    let (pipe, supervisor) = (ChunkPipe(), StreamSupervisor())
    let written = Atomic(0)
    supervisor.produce("test") {
      while written.load(ordering: .relaxed) < 3 * ServerLimit.pipeChunks, pipe.write([1]) {
        written.add(1, ordering: .relaxed)
      }
      pipe.finish(.complete)
    }
    eventually("the pipe was not filled") { written.load(ordering: .relaxed) == ServerLimit.pipeChunks }
    #expect(!supervisor.wait(milliseconds: 50))
    for _ in 0..<3 * ServerLimit.pipeChunks { #expect(text(pipe.next(milliseconds: 10_000)) == "\u{1}") }
    #expect(supervisor.wait(milliseconds: 10_000))
    #expect(text(pipe.next(milliseconds: 0)) == "end")
  }

  @Test("a producer that waits for room is let go when the reader leaves")
  func leaving() {
    let (pipe, supervisor) = (ChunkPipe(), StreamSupervisor())
    supervisor.produce("test") { while pipe.write([1]) {} }
    eventually("the pipe was not filled") { !supervisor.wait(milliseconds: 1) }
    pipe.close()
    #expect(supervisor.wait(milliseconds: 10_000))
    #expect(!pipe.write([1]))
  }

  @Test("lines are gathered into chunks of a fair size, and what is left goes with the end")
  func gathering() {
    let pipe = ChunkPipe()
    var lines = LineBuffer(pipe)
    let line = [UInt8](repeating: UInt8(ascii: "x"), count: 1_000)
    for _ in 0..<100 { _ = lines.append(line) }
    for _ in 0..<2 { _ = lines.flush() }
    pipe.finish(.complete)
    var sizes: [Int] = []
    while case .bytes(let bytes) = pipe.next(milliseconds: 0) { sizes.append(bytes.count) }
    #expect(sizes.count == 2 && sizes.reduce(0, +) == 100_100)
    #expect(sizes[0] >= ServerLimit.pipeChunkBytes && sizes[0] < ServerLimit.pipeChunkBytes + 1_001)
  }

  @Test("an export that breaks after its first bytes cuts the connection: nobody takes half for the whole")
  func brokenExport() throws {
    let server = try TestServer()
    let long = Value.string(Text(String(repeating: "x", count: 2 * ServerLimit.pipeChunkBytes)))
    for id in 0..<3 {
      try server.put(
        PartitionName("p"), "c", id: .int(Int64(id)), ValueMap([.init(key: "t", value: long)]) ?? ValueMap())
    }
    server.node.breakExports(NodeError(.failed, "the disk"))
    #expect(throws: ConnectionError.self) { try server.ask("GET", "/v1/partitions/p/documents") }
    #expect(try server.ask("GET", "/v1/status").status == 200)
  }

  @Test("an export that breaks before anything was sent is a problem like any other")
  func earlyBreak() throws {
    let server = try TestServer()
    try server.put(PartitionName("p"), "c", id: .int(1), ValueMap())
    server.node.breakExports(NodeError(.diskFull, "no room"))
    let answer = try server.ask("GET", "/v1/partitions/p/documents")
    #expect(answer.status == 507 && answer.detail == "no room")
  }

  @Test("bodies of all connections together are bounded, and what one gives back another may have")
  func budget() {
    let budget = BodyBudget(limit: 100)
    #expect(budget.reserve(60) && budget.reserve(40) && !budget.reserve(1))
    budget.release(40)
    #expect(!budget.reserve(41) && budget.reserve(40) && budget.reserve(0))
  }

  @Test("a watch that fails after its snapshot says so as an event, and ends")
  func failingWatch() throws {
    let server = try TestServer()
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(
      Array("GET /v1/partitions/p/collections/c/watch HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8))
    _ = try connection.wait(for: "event: snapshot")
    try #require(server.node.watches.first).fail(NodeError(.stopping, "the node is stopping"))
    let text = try connection.wait(for: "event: error")
    #expect(text.contains("urn:seamesh:problem:stopping"))
    while try connection.readMore() {}
  }

  @Test("who takes a result too slowly is cut off, and sees that it is not whole")
  func slowReader() {
    let documents = (0..<3).map { StoredDocument(id: .int($0), body: ValueMap(), etag: "e") }
    let inTime = DocumentListStream([1], DocumentList(FoundDocuments(documents)))
    let late = DocumentListStream([1], DocumentList(FoundDocuments(documents)), within: -1)
    guard case .bytes([1]) = inTime.next(), case .broken = late.next() else {
      Issue.record("a stream in time is told, and one beyond it is not")
      return
    }
  }
}
