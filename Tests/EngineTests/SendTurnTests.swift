import Testing
import Wire

@testable import Engine
@testable import Replication

/// What goes out first where a link takes away little at a time.
@Suite("Turns of sending") struct SendTurnTests {
  private let reports: PartitionName
  private let photos: PartitionName
  private let others: PartitionName

  init() throws {
    reports = try PartitionName("room=reports")
    photos = try PartitionName("room=photos")
    others = try PartitionName("room=others")
  }

  private static let byteMark = 64 * 1_024

  /// Two nodes that are level, and of which the first has a slow link.
  private func pair() throws -> (EngineBench, SessionID) {
    let bench = try EngineBench(2)
    bench.nodes[0].links.queueByteMark = Self.byteMark
    for node in bench.nodes { try node.subscribe("room=*") }
    for name in [reports, photos, others] { try bench.nodes[0].write(name, Put("first")) }
    let session = bench.meet(1, 0)
    drain(bench, session)
    bench.nodes[0].links.clearSent()
    return (bench, session)
  }

  /// The link has taken away what waited.
  private func drain(_ bench: EngineBench, _ session: SessionID) {
    bench.nodes[0].links.waitingByteCount = 0
    bench.nodes[0].engine.turn([.drained(session)])
  }

  /// Lets the link take away what waits until nothing more comes. Answers the most that waited.
  @discardableResult
  private func drainAll(_ bench: EngineBench, _ session: SessionID) -> Int {
    var most = bench.nodes[0].links.waitingByteCount
    for _ in 0..<200 {
      drain(bench, session)
      most = max(most, bench.nodes[0].links.waitingByteCount)
      bench.run()
    }
    return most
  }

  /// Of each message of content, in order, its partition, and whether it is a piece.
  private func said(_ bench: EngineBench) -> [(name: PartitionName, isPiece: Bool)] {
    bench.nodes[0].links.sent.compactMap { message in
      switch message {
      case .runs(let batch): (batch.name, false)
      case .payloadPiece(let piece): (piece.name, true)
      default: nil
      }
    }
  }

  @Test("a report goes out before the pieces that are left of a large document in another partition")
  func reportBeforePieces() throws {
    let (bench, session) = try pair()
    try bench.nodes[0].write(photos, Put("photo", byteCount: 600_000))
    let before = said(bench).count
    #expect(before > 0 && before < 5, "no more pieces than should wait")
    try bench.nodes[0].write(reports, Put("report"))
    #expect(said(bench).count == before, "it waits while the queue is long")
    drain(bench, session)
    let next = try #require(said(bench).dropFirst(before).first)
    #expect(next.name == reports && !next.isPiece)
    drainAll(bench, session)
    #expect(said(bench).filter { $0.name == photos }.map(\.isPiece).last == false)
    #expect(try bench.nodes[1].shown(photos, "photo") != nil && bench.nodes[1].shown(reports, "report") != nil)
  }

  @Test("a report waits for the document before it in its own partition, and for nothing behind that")
  func reportBehindDocument() throws {
    let (bench, session) = try pair()
    try bench.nodes[0].write(photos, Put("photo", byteCount: 300_000))
    try bench.nodes[0].write(photos, Put("report"))
    try bench.nodes[0].write(photos, Put("another", byteCount: 300_000))
    try bench.nodes[0].write(others, Put("other photo", byteCount: 300_000))
    drainAll(bench, session)
    let own = said(bench).filter { $0.name == photos }.map(\.isPiece)
    #expect(own == [Bool](repeating: true, count: 10) + [false, false] + [Bool](repeating: true, count: 10) + [false])
    #expect(try bench.nodes[1].shown(photos, "another") != nil && bench.nodes[1].shown(others, "other photo") != nil)
  }

  @Test("what waits for a slow link is no more than should and one portion, whatever there is to send")
  func bound() throws {
    let (bench, session) = try pair()
    bench.nodes[0].links.waitingByteCount = Self.byteMark + 1
    try bench.nodes[0].write(others, Put("hello"))
    for index in 0..<20 {
      try bench.nodes[0].write(reports, Put(Text("\(index)"), byteCount: 10_000))
      try bench.nodes[0].write(others, Put(Text("\(index)"), byteCount: 10_000))
      try bench.nodes[0].write(photos, Put(Text("\(index)"), byteCount: 100_000))
    }
    let most = drainAll(bench, session)
    #expect(most > Self.byteMark && most < Self.byteMark * 7 / 4, "\(most)")
    for name in [reports, photos, others] {
      #expect(bench.nodes[1].accepted(name) == bench.nodes[0].accepted(name))
    }
  }

  @Test("partitions send by turns, and pieces have theirs between the runs")
  func turns() throws {
    let (bench, session) = try pair()
    bench.nodes[0].links.waitingByteCount = Self.byteMark + 1
    try bench.nodes[0].write(others, Put("hello"))
    for index in 0..<40 {
      try bench.nodes[0].write(reports, Put(Text("\(index)"), byteCount: 10_000))
      try bench.nodes[0].write(others, Put(Text("\(index)"), byteCount: 10_000))
    }
    try bench.nodes[0].write(photos, Put("photo", byteCount: 300_000))
    drainAll(bench, session)
    let names = said(bench).dropFirst(4).prefix(18).map(\.name)
    for name in [reports, photos, others] {
      let count = names.count { $0 == name }
      #expect(count >= 5 && count <= 7, "\(name.text.string): \(count) of \(names.count)")
    }
  }

  @Test("more payloads than may be under way at once wait for one another, and all arrive")
  func crowded() throws {
    let bench = try EngineBench(2)
    bench.nodes[0].links.queueByteMark = Self.byteMark
    for node in bench.nodes { try node.subscribe("room=*") }
    let names = try (0..<5).map { try PartitionName(Text("room=\($0)")) }
    for name in names { try bench.nodes[0].write(name, Put("photo", byteCount: 200_000)) }
    let session = bench.meet(1, 0)
    drainAll(bench, session)
    var underWay: Set<PartitionName> = []
    for (name, isPiece) in said(bench) {
      if isPiece { underWay.insert(name) } else { underWay.remove(name) }
      #expect(underWay.count <= SendTurns.payloadLimit)
    }
    for name in names { #expect(try bench.nodes[1].shown(name, "photo") != nil) }
  }

  @Test("a payload that was begun is sent to its end, though the peer has its run from somebody else meanwhile")
  func heldMeanwhile() throws {
    let (bench, session) = try pair()
    let third = try bench.addMember()
    try bench.nodes[third].subscribe("room=*")
    bench.meet(third, 1)
    bench.meet(third, 0)
    bench.nodes[0].links.waitingByteCount = 0
    try bench.nodes[0].write(photos, Put("photo", byteCount: 600_000))
    // The third has all of it, and brings it to the second.
    while try bench.nodes[third].shown(photos, "photo") == nil || bench.nodes[1].shown(photos, "photo") == nil {
      for id in bench.nodes[0].state.mesh.sessions.ids where id != session { drain(bench, id) }
      bench.run()
      bench.advance(100)
      try #require(bench.clock.now.milliseconds < 120_000)
    }
    try bench.nodes[0].write(photos, Put("next", byteCount: 200_000))
    for id in bench.nodes[0].state.mesh.sessions.ids { drainAll(bench, id) }
    #expect(try bench.nodes[1].shown(photos, "next") != nil && bench.nodes[third].shown(photos, "next") != nil)
    #expect(bench.nodes[1].state.mesh.sessions[session] != nil, "no piece came out of order")
  }
}
