import Replication
import Synchronization
import Testing

@testable import Seamesh
@testable import Storage

/// Results that take several pages, of a collection that is written to meanwhile: each write gives all documents the next number.
@Suite("A result is of one moment", .serialized)
struct OneStateTests {
  private let fleet: TestFleet
  private let partition: PartitionName
  private static let count: Int64 = 20

  init() throws {
    partition = try PartitionName("agency=Galapagos")
    fleet = try TestFleet(1) { $0.reads.pageDocuments = 3 }
    try write(0)
  }

  private var node: Node { fleet.nodes[0] }

  private func write(_ number: Int64, to partition: PartitionName? = nil) throws {
    try OneStateTests.write(number, to: partition ?? self.partition, at: node)
  }

  private static func write(_ number: Int64, to partition: PartitionName, at node: Node) throws {
    let requests = (0..<count).map {
      DocumentRequest(
        collection: "reports", id: .int($0), action: .put(body: body(["n": .int(number)]), keepAbsent: true))
    }
    _ = try node.write(partition, requests)
  }

  /// Numbers of all documents, as passes meet them; `afterPage` is told which page of which pass it was.
  private func read(
    afterPage: (_ pass: Int, _ page: Int) throws -> Void
  ) throws -> (numbers: Set<Int64>, isOneState: Bool, passes: Int) {
    var passes = 0
    let share = node.documents.resultTurns.share()
    let (numbers, isOneState) = try node.documents.inOneState(partition, "reports", share) { pass throws(NodeError) in
      #expect(share.isLarge == (passes > 0), "a turn is taken before the second pass")
      passes += 1
      var numbers: Set<Int64> = []
      var pages = 0
      try pass.eachPage { rows throws(NodeError) in
        for row in rows {
          let shown = try node.documents.shown(row, partition, "reports") { _ in }
          if case .int(let number)? = shown?.body["n"] { numbers.insert(number) }
        }
        pages += 1
        do { try afterPage(passes, pages) } catch { throw NodeError(any: error) }
        return true
      }
      return numbers
    }
    return (numbers, isOneState, passes)
  }

  @Test("a collection that is at rest is read once")
  func atRest() throws {
    let found = try read { _, _ in }
    #expect(found.numbers == [0] && found.isOneState && found.passes == 1)
  }

  @Test("writes to other partitions do not matter")
  func elsewhere() throws {
    let other = try PartitionName("agency=Elsewhere")
    let found = try read { _, page in try write(Int64(page), to: other) }
    #expect(found.numbers == [0] && found.isOneState && found.passes == 1)
  }

  @Test("what is written between two pages leads to a pass over one snapshot, whatever is written during that")
  func writtenTo() throws {
    var next: Int64 = 0
    let found = try read { _, _ in
      next += 1
      try write(next)
    }
    #expect(found.numbers.count == 1 && found.isOneState && found.passes == 2)
  }

  @Test("a snapshot that lasts too long is let go of, and the result says that it is not of one moment")
  func tooLong() throws {
    var next: Int64 = 0
    let found = try read { pass, page in
      next += 1
      try write(next)
      // As where the store's log is to begin anew.
      if pass == 2, page == 2 { node.documents.readers.endRunning() }
    }
    #expect(found.numbers.count > 1 && !found.isOneState && found.passes == 3)
  }

  @Test("find shows one moment while somebody writes all the time")
  func find() throws {
    let isOver = Mutex(false)
    let writer = Task.detached { [node, partition] in
      var number: Int64 = 1
      while !isOver.withLock(\.self) {
        try OneStateTests.write(number, to: partition, at: node)
        number += 1
      }
    }
    defer {
      isOver.withLock { $0 = true }
      writer.cancel()
    }
    for _ in 0..<50 {
      let found = try node.find(partition, "reports", FindRequest(sort: [.init(path: "n", ascending: true)]))
      #expect(found.count == Int(OneStateTests.count))
      #expect(found.isOneState && Set(found.map { $0.body["n"] }).count == 1)
    }
  }
}
