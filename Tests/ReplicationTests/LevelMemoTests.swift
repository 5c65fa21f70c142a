import Testing

@testable import Replication

@Suite("Levels that are remembered")
struct LevelMemoTests {
  private func name(_ text: String) throws -> PartitionName { try PartitionName(Text(text)) }

  @Test("what a device may do is found once for each partition, and anew under more statements")
  func underMoreStatements() throws {
    var book = AuthorityTests.Book()
    book.say(.genesis(Statement.Genesis(fleetName: "fleet")))
    book.member("d0")
    let before = book.authority
    let (here, there) = (try name("here"), try name("there"))
    for _ in 0..<2 { #expect(before.level(of: Named.key("d0"), in: here) == .none) }
    #expect(before.levels.count == 1)
    book.grant(.write, to: .device(Named.key("d0")), on: "here")
    let after = before.adding(book.statements)
    #expect(after.level(of: Named.key("d0"), in: here) == .write)
    #expect(after.level(of: Named.key("d0"), in: there) == .none)
    #expect(after.level(of: Named.key("d1"), in: here) == .none)
    // Who holds the earlier statements goes on with them.
    #expect(before.level(of: Named.key("d0"), in: here) == .none)
  }

  @Test("names without number are remembered within a limit, and found all the same")
  func limit() throws {
    let (memo, device) = (LevelMemo(), Named.key("d0"))
    for number in 0...LevelMemo.limit {
      let level: AccessLevel = number.isMultiple(of: 2) ? .read : .write
      let partition = try name("p\(number)")
      #expect(memo.level(of: device, in: partition) { level } == level)
      #expect(memo.count <= LevelMemo.limit)
    }
    let first = try name("p0")
    #expect(memo.level(of: device, in: first) { .manage } == .manage)
    #expect(memo.level(of: device, in: first) { .none } == .manage)
  }
}
