import Identity
import Replication
import Testing
import Wire

@testable import Engine

/// Who is believed, and what rights let stand.
@Suite struct RightsTests {
  private let room: PartitionName
  init() throws { room = try PartitionName("room=1") }

  @Test("a device that an admin let in is believed by a node that knows neither of the two")
  func admittedByAdmin() throws {
    let bench = try EngineBench()
    func membership(_ key: SigningKey, _ role: Text) -> Statement.Body {
      .membership(
        Statement.Membership(device: key.publicKey, user: "user", label: "x", role: role, profile: ValueMap()))
    }
    let (admin, device) = (bench.newKey(), bench.newKey())
    let ofAdmin = try bench.statement(membership(admin, FleetFounding.adminRole))
    let ofDevice = try StatementSigner(fleet: bench.founding.fleet, key: admin).sign(
      membership(device, "officer"))
    let slot = try bench.add(
      directory: try bench.directory(), key: device, mark: BenchMark(),
      bench.founding.statements + [ofAdmin, ofDevice])
    for node in bench.nodes { try node.subscribe("room=*") }
    try bench.nodes[slot].write(room, Put("a"))
    bench.meet(slot, 0)
    #expect(bench.nodes[0].state.mesh.sessions.count == 1)
    #expect(try bench.nodes[0].shown(room, "a") != nil)
  }

  @Test("rights that fell hold after a restart, too: what lies beyond them does not come to count")
  func rightsAfterRestart() throws {
    let (bench, session) = try EngineBench.pair(in: room)
    bench.cut(session)
    let messenger = try bench.messenger(try bench.grant(.read))
    bench.cut(bench.meet(messenger, 1))
    #expect(try bench.nodes[1].shown(room, "first") == nil)
    try bench.restart(1)
    // Written by who has not heard of it.
    try bench.nodes[0].write(room, Put("second"))
    bench.meet(1, 0)
    #expect(try bench.nodes[1].count("documents WHERE alive") == 0)
    #expect(bench.nodes[1].accepted(room).isEmpty)
    #expect(try bench.nodes[0].count("documents WHERE alive") == 0)
  }

  @Test("in a partition of all users a device writes its own user's card alone, whatever the author let through")
  func cards() throws {
    let bench = try EngineBench(2)
    let cards = try PartitionName("all-users=x")
    for node in bench.nodes { try node.subscribe("all-users=*") }
    struct Card: DocumentEdit {
      let id: Value
      let field: Text
      var collection: Text { Put.collection }
      func outcome(on present: PresentDocument) -> DocumentOutcome {
        .body(map([field: .string("x")]), hints: .none)
      }
    }
    // Only a grant to everyone lets a user write another's card.
    let open = Statement.Grant(subject: .everyone, level: .write, pattern: "all-users=*")
    let herald = try bench.messenger(try bench.statement(.grant(open)))
    for slot in 0...1 { bench.cut(bench.meet(herald, slot)) }
    try bench.nodes[0].write(cards, Card(id: .string("u"), field: "displayName"))
    try bench.nodes[0].write(cards, Card(id: .string("user"), field: "displayName"))
    bench.meet(0, 1)
    #expect(try bench.nodes[1].shown(cards, "user") != nil)
    let closed = Statement.Grant(subject: .everyone, level: .read, pattern: "all-users=*")
    let messenger = try bench.messenger(try bench.statement(.grant(closed)))
    bench.meet(messenger, 0)
    bench.meet(messenger, 1)
    for node in bench.nodes.prefix(2) { #expect(try node.shown(cards, "user") == nil) }
    for node in bench.nodes.prefix(2) { #expect(try node.shown(cards, "u") != nil) }
  }
}
