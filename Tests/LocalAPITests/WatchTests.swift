import Foundation
import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@Suite("Live results and stopping")
struct WatchTests {
  let server: TestServer
  let watch = "/v1/partitions/p/collections/c/watch"

  init() throws { server = try TestServer() }

  private func open(_ target: String, headers: String = "") throws -> Connection {
    let connection = try Connection(unixSocket: server.server.endpoints.socket)
    connection.send(Array("GET \(target) HTTP/1.1\r\nHost: x\r\n\(headers)\r\n".utf8))
    return connection
  }

  @Test("a watch sends the snapshot, then each event with its position and cursor")
  func events() throws {
    try server.put(PartitionName("p"), "c", id: .string("a"), ValueMap())
    let connection = try open(watch + "?filter=%7B%22n%22%3A1%7D&sort=%7B%22z%22%3A-1,%22a%22%3A1%7D&limit=4")
    let head = try connection.wait(for: "\"documents\"")
    #expect(head.contains("Content-Type: text/event-stream"))
    _ = try connection.wait(for: "id: c1\nevent: snapshot\ndata: {\"documents\":[{\"_id\":\"a\"}]}\n\n")
    #expect(server.node.lastFind?.filter["n"] == .int(1))
    #expect(server.node.lastFind?.sort.map(\.path) == ["z", "a"])
    #expect(server.node.lastFind?.limit == 4)
    let events = try #require(server.node.watches.first)
    let document = StoredDocument(id: .string("b"), body: ValueMap(), etag: "e")
    events.push(.insert(document, position: 1, cursor: "c2"))
    _ = try connection.wait(for: "id: c2\nevent: insert\ndata: {\"document\":{\"_id\":\"b\"},\"position\":1}\n\n")
    events.push(.update(document, position: 0, previousPosition: 1, cursor: "c3"))
    _ = try connection.wait(
      for: "event: update\ndata: {\"document\":{\"_id\":\"b\"},\"position\":0,\"previousPosition\":1}\n\n")
    events.push(.delete(id: .string("b"), position: 0, cursor: "c4"))
    _ = try connection.wait(for: "id: c4\nevent: delete\ndata: {\"id\":\"b\",\"position\":0}\n\n")
  }

  @Test("receipts that are watched come at once and whenever they change, and end where nobody reads them any more")
  func receipts() throws {
    try server.put(PartitionName("p"), "c", id: .string("a"), ValueMap())
    for target in [
      "/v1/partitions/p/receipts/watch", "/v1/partitions/p/collections/c/documents/a/receipts/watch?ask=true",
    ] {
      var connection: Connection? = try open(target)
      let head = try connection?.wait(for: "event: receipts\ndata: {")
      #expect(head?.contains("Content-Type: text/event-stream") == true)
      let watch = try #require(server.node.receiptWatches.last)
      var report = ReceiptReport()
      report.changes = [ReceiptReport.Change(replica: "00ff", sequence: 7)]
      watch.push(report)
      _ = try connection?.wait(for: "\"changes\":[{\"replica\":\"00ff\",\"sequence\":7}]")
      connection = nil
      eventually("the subscription was not cancelled") { watch.isCancelled }
    }
    #expect(server.node.receiptWatches.count == 2 && server.node.hasAskedForReceipts)
  }

  @Test("a client that comes back with the present cursor is not sent the result again, any other is")
  func resuming() throws {
    try server.put(PartitionName("p"), "c", id: .string("a"), ValueMap())
    let current = try open(watch, headers: "Last-Event-ID: c1\r\n").wait(for: "nothing has changed")
    #expect(!current.contains("snapshot"))
    _ = try open(watch, headers: "Last-Event-ID: c0\r\n").wait(for: "event: snapshot")
  }

  @Test("a watch whose client leaves is cancelled, with no event to tell it so")
  func leaving() throws {
    var connection: Connection? = try open(watch)
    _ = try connection?.wait(for: "snapshot")
    connection = nil
    let events = try #require(server.node.watches.first)
    eventually("the subscription was not cancelled") { events.isCancelled }
  }

  @Test("an error before the first event is a problem")
  func refusal() throws {
    server.node.fail(NodeError(.unprocessable, "no $where"))
    #expect(try server.ask("GET", watch).status == 422)
  }

  @Test("a result that cannot be begun is a refusal, not a stream; one that fails later ends with the reason")
  func tooLarge() throws {
    let connection = try open(watch)
    _ = try connection.wait(for: "snapshot")
    server.node.watches.first?.fail(NodeError(.tooLarge, "more than 4 documents"))
    let events = try connection.wait(for: "more than 4 documents")
    #expect(events.contains("event: error\ndata: {\"detail\":\"more than 4 documents\",\"status\":413"))

    server.node.failWatches(NodeError(.tooLarge, "more than 4 documents"))
    let refused = try server.ask("GET", watch)
    #expect(refused.status == 413 && refused.detail == "more than 4 documents")
    eventually("a refused watch is not left behind") { server.node.watches.last?.isCancelled == true }
  }

  @Test("stop ends open watches and exports within two seconds")
  func stopping() throws {
    let watching = try (0..<5).map { _ in try open(watch) }
    for connection in watching { _ = try connection.wait(for: "snapshot") }
    try server.put(
      PartitionName("p"), "c", id: .string("a"),
      ValueMap([.init(key: "t", value: .string(Text(String(repeating: "x", count: 9_000))))]) ?? ValueMap())
    server.node.stallExports()
    let export = try open("/v1/partitions/p/documents")
    _ = try export.wait(for: "xxx")
    let idle = try Connection(unixSocket: server.server.endpoints.socket)
    let started = ContinuousClock.now
    server.server.stop()
    #expect(ContinuousClock.now - started < .seconds(2))
    eventually("the subscriptions were not cancelled") { server.node.watches.allSatisfy(\.isCancelled) }
    #expect(!FileManager.default.fileExists(atPath: server.server.endpoints.socket))
    #expect(try !idle.readMore())
    server.server.stop()
  }

  @Test("a request beyond the limit is answered as a problem, and served once one has left")
  func requestLimit() throws {
    var watching = try (0..<ServerLimit.requests(of: Int(ServerLimit.connections))).map { _ in
      let connection = try open(watch)
      _ = try connection.wait(for: "snapshot")
      return connection
    }
    let refused = try server.ask("GET", "/v1/status")
    #expect(refused.status == 503 && refused.json["type"] == .string("urn:seamesh:problem:busy"), "\(refused.text)")
    #expect(refused.headers["retry-after"] == "1" && refused.headers["connection"] == "close")
    watching.removeAll()
    eventually("no place became free") { (try? server.ask("GET", "/v1/status").status) == 200 }
  }

  @Test("a data directory whose path is too long for a socket has a link to one in the runtime directory")
  func longDirectory() throws {
    let runtime = NSTemporaryDirectory() + "/run-" + String(UUID().uuidString.prefix(8))
    try FileManager.default.createDirectory(atPath: runtime, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: runtime) }
    let long = try TestServer(name: String(repeating: "d", count: 120), runtimeDirectory: runtime)
    #expect(long.server.endpoints.socketIsElsewhere)
    #expect(long.server.endpoints.socket.hasPrefix(runtime))
    #expect(UnixSocketPath.resolve(directory: long.directory) == long.server.endpoints.socket)
    #expect(try long.ask("GET", "/v1/status").status == 200)
    #expect(UnixSocketPath.resolve(directory: server.directory) == server.server.endpoints.socket)
  }

  @Test("a socket that a killed node left behind is replaced")
  func staleSocket() throws {
    let second = try LocalServer.start(
      node: server.node, configuration: LocalServerConfiguration(directory: server.directory))
    defer { second.stop() }
    #expect(try server.ask("GET", "/v1/status").status == 200)
  }
}
