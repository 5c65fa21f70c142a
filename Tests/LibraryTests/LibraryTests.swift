import Foundation
import Seamesh
import Testing

/// What an app can do with the public interface alone.
@Suite("The library") struct LibraryTests {
  @Test("a report that one app writes is found, watched and changed by another of its fleet")
  func twoApps() async throws {
    let deck = try await App.founding()
    let bridge = try await App.joining(deck)
    defer { withExtendedLifetime((deck, bridge)) {} }
    try await bridge.node.subscribe(to: "agency=midway")
    let reports = try bridge.node.collection("reports", in: "agency=midway")
    var events = try reports.watch(#"{"vessel":"Ada"}"#).makeAsyncIterator()
    #expect(try await events.next() == .snapshot([]))

    let written = try deck.node.collection("reports", in: "agency=midway")
    let id = try await written.insert(#"{"vessel":"Ada","crew":3}"#)
    guard case .insert(let arrived)? = try await events.next() else {
      Issue.record("the insert was not the next event")
      return
    }
    #expect(arrived.id == id && arrived.json.contains(#""crew":3"#))
    #expect(try await Array(reports.find(#"{"crew":{"$in":[3,4]}}"#)) == [arrived])

    try await reports.patch(id, #"{"crew":null,"mate":"Grace"}"#, ifMatch: arrived.etag)
    guard case .update(let changed)? = try await events.next() else {
      Issue.record("the patch was not the next event")
      return
    }
    #expect(changed.json.contains("Grace") && !changed.json.contains("crew") && changed.etag != arrived.etag)
    try await reports.delete(id)
    #expect(try await events.next() == .delete(id))
    #expect(try await reports.document(id) == nil)
  }

  @Test("of two values that were written apart an app decides, on the version that it was shown")
  func conflicts() async throws {
    let deck = try await App.founding()
    let bridge = try await App.joining(deck)
    defer { withExtendedLifetime((deck, bridge)) {} }
    try await bridge.node.subscribe(to: "p")
    var events = try bridge.node.collection("duty", in: "p").watch().makeAsyncIterator()
    #expect(try await events.next() == .snapshot([]))
    try await deck.node.collection("duty", in: "p").put(#"{"_id":"a","n":1}"#)
    _ = try await events.next()
    // Each writes while the other is away.
    deck.node.stop()
    try await bridge.node.collection("duty", in: "p").put(#"{"_id":"a","n":2}"#)
    bridge.node.stop()
    let first = try await Node.open(deck.directory, options: App.options())
    defer { first.stop() }
    let duty = try first.collection("duty", in: "p")
    try await duty.put(#"{"_id":"a","n":3}"#)
    let second = try await Node.open(bridge.directory, options: App.options(first.listenAddresses))
    defer { second.stop() }
    // What comes changes the document's version even where it changes nothing that is shown.
    let own = try #require(try await duty.document("a")).etag
    let deadline = ContinuousClock.now + .seconds(30)
    while try await duty.document("a")?.etag == own, ContinuousClock.now < deadline { await Task.yield() }
    let page = try await first.conflicts(in: "p")
    let conflict = try #require(page.conflicts.first)
    #expect(page.next == nil && conflict.document == "a" && conflict.place == "n" && conflict.values.count == 1)
    #expect(Set([conflict.shown, conflict.values[0].json]) == ["2", "3"])
    try await first.resolve(conflict.id, in: "p", .value("4"))
    #expect(try await duty.document("a")?.json == #"{"_id":"a","n":4}"#)
    #expect(try await first.conflicts(in: "p").conflicts.isEmpty)
    let error = await #expect(throws: NodeError.self) { try await first.resolve(conflict.id, in: "p", .keep) }
    #expect(error?.code == .preconditionFailed)
    let malformed = await #expect(throws: NodeError.self) { try await first.resolve(conflict.id, in: "p", .value("{")) }
    #expect(malformed?.code == .badRequest)
  }

  @Test("what was written is there when the directory is opened again")
  func reopening() async throws {
    let app = try await App.founding()
    try await app.node.collection("duty", in: "p").put(#"{"_id":"a","on":true}"#)
    app.node.stop()
    let node = try await Node.open(app.directory, options: App.options())
    defer { node.stop() }
    #expect(try await node.collection("duty", in: "p").document("a")?.json == #"{"_id":"a","on":true}"#)
  }

  @Test("an app asks what it may, lowers that, and is told by type what a write lacks")
  func rights() async throws {
    let app = try await App.founding()
    let (node, label) = (app.node, "deck")
    #expect(try await node.can(.write, in: "p"))
    #expect(try await !node.can(.manage, in: "p"))
    let preview = try await node.grant(.read, to: .everyone, in: "*", .preview)
    #expect(!preview.isSigned && preview.warnings.isEmpty && preview.partitions.isEmpty)
    #expect(try await node.can(.write, in: "p"))
    let unconfirmed = await #expect(throws: NodeError.self) { try await node.grant(.read, to: .everyone, in: "*") }
    #expect(unconfirmed?.code == .unprocessable && unconfirmed?.message.contains("nothing was signed") == true)
    #expect(try await node.can(.write, in: "p"))
    #expect(try await node.grant(.read, to: .everyone, in: "*", .signConfirmed).isSigned)
    #expect(try await !node.can(.write, in: "p"))
    #expect(try await node.can(.read, in: "p"))
    let refused = await #expect(throws: NodeError.self) {
      try await node.collection("duty", in: "p").put(#"{"_id":"a"}"#)
    }
    #expect(refused?.code == .notPermitted)
    #expect(refused?.lackOfRight?.partition == "p" && refused?.lackOfRight?.has == .read)
    #expect(refused?.lackOfRight?.needs == .write)
    // Nobody is ended by mistake.
    let last = await #expect(throws: NodeError.self) { try await node.revoke(label, .sign) }
    #expect(last?.code == .unprocessable && last?.message.contains(".signConfirmed") == true)
    await #expect(throws: NodeError.self) { try await node.can(.read, in: "") }
    await #expect(throws: NodeError.self) { try await node.grant(.read, to: .user(""), in: "p") }
  }

  @Test("a write against another version is refused, and the document stays as it is")
  func versions() async throws {
    let app = try await App.founding()
    let duty = try app.node.collection("duty", in: "p")
    try await duty.put(#"{"_id":7,"on":true}"#)
    let first = try #require(try await duty.document(7))
    try await duty.put(#"{"_id":7,"on":false}"#, ifMatch: first.etag)
    let error = await #expect(throws: NodeError.self) { try await duty.put(#"{"_id":7,"on":1}"#, ifMatch: first.etag) }
    #expect(error?.code == .preconditionFailed)
    #expect(try await duty.document(7)?.json.contains("false") == true)
  }

  @Test("a put replaces, and keeps what it leaves out where it is told to; a patch changes what is there, or makes it")
  func replacingAndPatching() async throws {
    let app = try await App.founding()
    let duty = try app.node.collection("duty", in: "p")
    try await duty.put(#"{"_id":"a","on":true,"post":"bow"}"#)
    try await duty.put(#"{"_id":"a","on":false}"#, keepingAbsent: true)
    #expect(try await duty.document("a")?.json == #"{"_id":"a","on":false,"post":"bow"}"#)
    try await duty.put(#"{"_id":"a","on":false}"#)
    #expect(try await duty.document("a")?.json == #"{"_id":"a","on":false}"#)
    for patch in [#"{"n":1}"#, #"{"$set":{"n":1}}"#] {
      let error = await #expect(throws: NodeError.self) { try await duty.patch("b", patch) }
      #expect(error?.code == .notFound)
      #expect(try await duty.document("b") == nil)
      try await duty.patch("b", patch, upserting: true)
      #expect(try await duty.document("b")?.json == #"{"_id":"b","n":1}"#)
      try await duty.delete("b")
    }
    try await duty.patch("a", #"{"$set":{"post":"stern"},"$unset":{"on":""}}"#)
    #expect(try await duty.document("a")?.json == #"{"_id":"a","post":"stern"}"#)
    let error = await #expect(throws: NodeError.self) { try await duty.patch("a", #"{"$set":{"x":1},"y":1}"#) }
    #expect(error?.code == .badRequest)
  }

  @Test("bad input gets an error that names its place", arguments: [#"{"a":"#, #"{"a":1}"#, #"{"_id":"x","a":NaN}"#])
  func badInput(json: String) async throws {
    let app = try await App.founding()
    let duty = try app.node.collection("duty", in: "p")
    let error = await #expect(throws: NodeError.self) { try await duty.put(json) }
    #expect(error?.message.isEmpty == false)
    #expect(try await duty.find().isEmpty)
    #expect(throws: NodeError.self) { try app.node.collection("duty", in: "") }
  }

  @Test("watching ends with its task")
  func cancelling() async throws {
    let app = try await App.founding()
    let events = try app.node.collection("duty", in: "p").watch()
    let (begun, signal) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      var count = 0
      for try await _ in events {
        count += 1
        signal.yield()
      }
      return count
    }
    for await _ in begun { break }
    task.cancel()
    #expect(try await task.value == 1)
  }
}

/// A node in a directory of its own, on loopback.
private final class App: Sendable {
  let node: Node
  let directory: String

  private init(_ directory: String, peers: [String] = []) async throws {
    self.directory = directory
    node = try await Node.open(directory, options: App.options(peers))
  }

  deinit {
    node.stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  static func options(_ peers: [String] = []) -> Node.Options {
    var options = Node.Options()
    (options.isLocalOnly, options.usesDiscovery, options.peers) = (true, false, peers)
    return options
  }

  private static func newDirectory() -> String { NSTemporaryDirectory() + "seamesh-library-\(UUID().uuidString)" }

  static func founding() async throws -> App {
    let directory = newDirectory()
    try await Node.createFleet(named: "test", user: "ada@test.example", device: "deck", in: directory)
    return try await App(directory)
  }

  static func joining(_ other: App) async throws -> App {
    let directory = newDirectory()
    let code = try await other.node.joinCode(forUser: "grace@test.example")
    let peers = other.node.listenAddresses
    try await Node.joinFleet(code: code, device: "bridge", in: directory, options: options(peers))
    return try await App(directory, peers: peers)
  }
}
