import Foundation
import Replication
import Storage
import TestSupport
import Testing

@testable import Engine
@testable import Seamesh

/// Live results that slept through more commits than the feed remembers, and followers that come back after a restart.
@Suite(.serialized) struct MissedCommitsTests {
  private let partition: PartitionName
  private let elsewhere: PartitionName

  init() throws {
    partition = try PartitionName("agency=Galapagos")
    elsewhere = try PartitionName("agency=Elsewhere")
  }

  private func fleet(_ limits: (inout ReadLimits) -> Void = { _ in }) throws -> TestFleet {
    try TestFleet(1) { limits(&$0.reads) }
  }

  private func put(_ node: Node, _ id: Text, _ n: Int64 = 1) throws {
    try node.put(partition, "reports", id, body(["n": .int(n)]))
  }

  private func delete(_ node: Node, _ id: Text) throws {
    _ = try node.write(partition, [DocumentRequest(collection: "reports", id: .string(id), action: .delete)])
  }

  /// Commits in another partition, more than the feed remembers.
  private func outrun(_ node: Node) throws {
    for number in 0...CommitFeed.recordLimit {
      try node.put(elsewhere, "noise", "x", body(["n": .int(Int64(number))]))
    }
  }

  private func mirror(_ node: Node, _ request: FindRequest = FindRequest()) throws -> LiveMirror {
    try LiveMirror(try node.watch(partition, "reports", request))
  }

  @Test(
    "it gets exactly the events of what changed meanwhile, and reads nothing else: damage elsewhere does not matter")
  func readsWhatChanged() throws {
    let fleet = try fleet()
    let node = fleet.nodes[0]
    for id in ["a", "b", "c", "d"] as [Text] { try put(node, id) }
    let mirror = try mirror(node)
    try node.damage(id: .string("d"))
    try put(node, "b", 2)
    try delete(node, "a")
    try put(node, "e")
    try put(node, "f")
    try delete(node, "f")
    try node.put(partition, "others", "g", body(["n": .int(1)]))
    try outrun(node)
    try mirror.drain()
    #expect(try node.mended() == 0)
    #expect(mirror.events == ["-a", "~b", "+e"])
    #expect(mirror.ids == ["b", "c", "d", "e"].map { .string($0) })
    // Nothing of it comes a second time.
    try outrun(node)
    try mirror.drain()
    #expect(mirror.events.count == 3)
  }

  @Test("documents that were rebuilt without a run are among it: a right fell and rose again")
  func narrowed() throws {
    let fleet = try fleet()
    let node = fleet.nodes[0]
    for id in ["a", "b", "c"] as [Text] { try put(node, id) }
    let mirror = try mirror(node)
    try put(node, "b", 2)
    let end = try node.chainEnd(partition, at: 2)
    try outrun(node)
    try node.say(try fleet.grant(.read, ends: [end]))
    try mirror.drain()
    #expect(mirror.events == ["-c"])
    #expect(try mirror.shown == node.find(partition, "reports", FindRequest()).documents)
    try node.say(try fleet.grant(.write))
    try outrun(node)
    try mirror.drain()
    #expect(mirror.events == ["-c", "~b", "+c"])
    #expect(try mirror.shown == node.find(partition, "reports", FindRequest()).documents)
  }

  @Test("where more changed than is worth looking up, the collection is read anew", arguments: [3, 4])
  func bound(_ limit: Int) throws {
    let fleet = try fleet { $0.missedDocuments = limit }
    let node = fleet.nodes[0]
    for id in ["a", "b"] as [Text] { try put(node, id) }
    let mirror = try mirror(node)
    for n in 2...4 as ClosedRange<Int64> { try put(node, "a", n) }
    try put(node, "c")
    try outrun(node)
    try node.damage(id: .string("b"))
    try mirror.drain()
    #expect(mirror.events == ["~a", "+c"])
    #expect(try node.mended() == (limit == 3 ? 1 : 0))
  }

  @Test(
    "whatever happened in whatever order, it ends with what a fresh question finds", arguments: [nil, 4], [1, 2, 3])
  func random(_ limit: Int?, _ seed: UInt64) throws {
    // Pages so small that the log is read in several.
    let fleet = try fleet { ($0.pageDocuments, $0.pageBytes) = (3, 500) }
    let node = fleet.nodes[0]
    var random = SplitMix64(seed: seed)
    let request = FindRequest(sort: [.init(path: "n", ascending: true)], limit: limit)
    for number in 0..<8 { try put(node, Text("d\(number)"), Int64(number)) }
    let mirror = try mirror(node, request)
    for _ in 0..<2 {
      for _ in 0..<30 {
        let id = Text("d\(Int.random(in: 0..<12, using: &random))")
        let isThere = try node.read(partition, "reports", id: .string(id)) != nil
        if isThere, Bool.random(using: &random) {
          try delete(node, id)
        } else {
          try put(node, id, Int64.random(in: 0..<9, using: &random))
        }
      }
      try outrun(node)
      try mirror.drain()
      #expect(try mirror.shown == node.find(partition, "reports", request).documents)
    }
  }

  @Test("a large document, whose payload does not lie in its run, is looked up like any other")
  func large() throws {
    let fleet = try fleet()
    let node = fleet.nodes[0]
    let mirror = try mirror(node)
    try node.put(partition, "reports", "a", body(["n": .bytes([UInt8](repeating: 7, count: 40_000))]))
    try outrun(node)
    try mirror.drain()
    #expect(mirror.events == ["+a"])
  }

  @Test(
    "where a run that came meanwhile does not read, the collection is read anew", arguments: ["", ", sum=NULL"])
  func damagedRun(besides: String) throws {
    let fleet = try fleet()
    let node = fleet.nodes[0]
    try put(node, "a")
    let mirror = try mirror(node)
    try put(node, "b")
    try node.execute("UPDATE runs SET body=x'ff'\(besides) WHERE arrival=(SELECT max(arrival) FROM runs)")
    try put(node, "c")
    try outrun(node)
    try mirror.drain()
    #expect(mirror.events == ["+b", "+c"])
  }

  // MARK: Positions that were kept

  private func place(_ node: Node) throws -> ChangedDocuments.Place {
    ChangedDocuments.Place(
      partition: try node.engine.ask { [partition] in $0.state.identity.id(of: partition) }, collection: "reports")
  }

  /// What a follower that goes on from `text` finds first: ids; nil where it is to read everything.
  private func found(_ node: Node, from text: String) throws -> Set<Text>? {
    let position = try #require(LogPosition(text: text))
    let follower = try #require(node.feed.follow(from: position))
    defer { node.feed.remove(follower) }
    let place = try place(node)
    guard case .missed(position) = follower.wait(for: place, timeoutMilliseconds: 0) else {
      Issue.record("nothing was missed")
      return nil
    }
    return try node.documents.documents(of: place, writtenAfter: position).map { keys in
      Set(keys.compactMap { if case .string(let id)? = Value(canonicalID: $0) { id } else { nil } })
    }
  }

  private func kept(_ node: Node) throws -> String {
    let follower = try #require(node.feed.follow())
    defer { node.feed.remove(follower) }
    return follower.position.text
  }

  @Test("a position outlives the node's run: what was written since is told, and nothing before it")
  func restart() throws {
    let fleet = try fleet()
    try put(fleet.nodes[0], "a")
    let kept = try kept(fleet.nodes[0])
    try put(fleet.nodes[0], "b")
    try fleet.restart(0)
    #expect(try found(fleet.nodes[0], from: kept) == ["b"])
    try put(fleet.nodes[0], "c")
    #expect(try found(fleet.nodes[0], from: kept) == ["b", "c"])
    #expect(try found(fleet.nodes[0], from: self.kept(fleet.nodes[0])) == [])
  }

  @Test("a position from before documents were rebuilt says so after a restart: all is to be read")
  func restartAfterRebuild() throws {
    let fleet = try fleet()
    for id in ["a", "b"] as [Text] { try put(fleet.nodes[0], id) }
    let before = try kept(fleet.nodes[0])
    try fleet.nodes[0].say(try fleet.grant(.read, ends: [try fleet.nodes[0].chainEnd(partition, at: 1)]))
    let after = try kept(fleet.nodes[0])
    try fleet.restart(0)
    #expect(try found(fleet.nodes[0], from: before) == nil)
    #expect(try found(fleet.nodes[0], from: after) == [])
  }

  @Test("a position of a store that was put back from a backup since is not gone on from")
  func restored() throws {
    let fleet = try fleet()
    try put(fleet.nodes[0], "a")
    let backup = fleet.path(of: 0) + "/a.backup"
    try fleet.nodes[0].backup(to: backup) { _, _ in }
    try put(fleet.nodes[0], "b")
    let before = try kept(fleet.nodes[0])
    fleet.nodes[0].stop()
    _ = try NodeSetup.restore(fleet.path(of: 0), from: backup) { _, _ in }
    try fleet.restart(0)
    for id in ["c", "d"] as [Text] { try put(fleet.nodes[0], id) }
    #expect(try found(fleet.nodes[0], from: before) == nil)
  }
}
