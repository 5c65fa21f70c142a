import Replication
import SampleData
import Testing

@testable import Seamesh

/// README and the help of `find` and `watch` say how many of the sample reports one result holds.
@Suite("How much one result holds", .serialized)
struct ResultSizeTests {
  private let partition: PartitionName
  init() throws { partition = try PartitionName("agency=Galapagos") }

  private func fill(_ node: Node, _ reports: some Sequence<SampleDocument>) throws {
    let requests = reports.map {
      DocumentRequest(collection: "reports", id: $0.id, action: .put(body: $0.body, keepAbsent: false))
    }
    for result in try node.writeEach(partition, requests) { _ = try result.get() }
  }

  private func refusal(_ ask: () throws -> Void) -> NodeError? {
    do {
      try ask()
      return nil
    } catch {
      return error as? NodeError
    }
  }

  @Test("so many sample reports as the documents say are one result, sorted, or watched; of more a projection is")
  func sampleReports() throws {
    let fleet = try TestFleet(1)
    let node = fleet.nodes[0]
    let sorted = FindRequest(sort: [.init(path: "date", ascending: false)])
    let all = Array(SampleReports(seed: 1).prefix(600))
    try fill(node, all.prefix(520))
    #expect(try node.find(partition, "reports", sorted).count == 520)
    let watch = try node.watch(partition, "reports", FindRequest())
    guard case .snapshot(let watched, _)? = try watch.next(timeoutMilliseconds: 10_000) else {
      Issue.record("no snapshot came")
      return
    }
    #expect(watched.count == 520)
    watch.cancel()
    try fill(node, all[520..<540])
    #expect(try node.find(partition, "reports", FindRequest()).count == 540)
    try fill(node, all[540...])
    for request in [FindRequest(), sorted] {
      let refused = refusal { _ = try node.find(partition, "reports", request) }
      #expect(refused?.code == .tooLarge && refused?.message.contains("a projection") == true, "\(refused as Any)")
    }
    let shown = FindRequest(projection: body(["date": .int(1), "vessel": .int(1)]))
    #expect(try node.find(partition, "reports", shown).count == 600)
  }
}
