import Replication
import Testing

@Suite("Rights: conformance vectors")
struct AuthorityConformanceTests {
  @Test("levels of every membership in every partition, in any order of the statements")
  func levels() throws {
    var count = 0
    for json in try ChainsVectors.cases("rights") {
      count += 1
      let name: String = try ChainsVectors.string(json["name"])
      let statements = try ChainsVectors.statements(of: json)
      let members: [String: String] = try ChainsVectors.cast(json["members"])
      let orders: [[Int]] = try ChainsVectors.cast(json["orders"])
      let dropped = try (ChainsVectors.cast(json["dropped"]) as [String]).map { try ChainsVectors.hash($0) }
      for order in orders {
        let authority = Authority(named: order.map { statements[$0] }, limit: ChainsVectors.limit(of: json))
        #expect(statements.map(\.id).filter { !authority.holds($0) }.sorted() == dropped, "\(name)")
        for row in try ChainsVectors.rows(json["levels"]) {
          let member = try ChainsVectors.hash(members[ChainsVectors.string(row[0])])
          let expected: String = try ChainsVectors.string(row[2])
          // A name that is none has no level: there is no such partition to ask for.
          let partition = try? PartitionName(ChainsVectors.name(row[1]))
          let level = partition.map { authority.level(of: member, in: $0) } ?? .none
          #expect("\(level)" == expected, "\(name): \(row)")
        }
      }
    }
    #expect(count == 200)
  }
}
