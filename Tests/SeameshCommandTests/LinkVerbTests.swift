import LocalAPITestSupport
import Replication
import Seamesh
import Testing
import Wire

@testable import SeameshCommand

@Suite("What links cost, as people are shown it", .enabled(if: isCommandBuilt), .serialized)
struct LinkVerbTests {
  /// At its limit, with something that waits for an hour.
  private var satellite: LinkReport {
    var link = LinkReport()
    (link.linkClass, link.interfaces, link.sessions, link.passes) = ("satellite", ["ppp0"], 1, "authority")
    (link.bytesPerDay, link.bytesToday, link.renewsMilliseconds) = (10_000_000, 10_100_000, 7_200_000)
    (link.waitingChanges, link.waitingBytes, link.waitingCost) = (3, 8_000, 9_000)
    link.waitingMilliseconds = 3_600_000
    return link
  }

  private var free: LinkReport {
    var link = LinkReport()
    (link.linkClass, link.interfaces, link.sessions, link.passes) = ("harbour", ["eth0"], 4, "everything")
    return link
  }

  private let waiting = "3 changes, about 9.0 kB, since 1 h 0 min"

  @Test("status says what waits for a link, what it will cost and since when, and nothing of one that is free")
  func status() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    var status = NodeStatus()
    status.links = [free, satellite]
    node.show(status: status)
    let shown = try server.run(["status"])
    let lines = shown.output.split(separator: "\n").filter { $0.hasPrefix("links") }
    #expect(
      lines.map { $0.dropFirst(12) } == [
        "satellite: 10.1 MB of 10.0 MB today, passes authority alone, for 2 h 0 min; waiting: \(waiting)"
      ], "\(shown)")
    status.links = [free]
    node.show(status: status)
    #expect(try !server.run(["status"]).output.contains("links"))
  }

  @Test(
    "links shows each class with its bytes of today, its limit, what passes and what waits, and takes a class for all")
  func links() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    #expect(
      try server.run(["links"]).output
        == "no link is in use, and none has a rule: whatever comes up passes everything\n")
    var ordered = satellite
    (ordered.linkClass, ordered.passes, ordered.carries, ordered.isChosen) = (
      "mobile", "partitions", ["a=1", "*"], true
    )
    (ordered.waitingChanges, ordered.interfaces) = (0, [])
    node.show(links: [free, ordered, satellite])
    let rows = try server.run(["links"]).output.split(separator: "\n").map {
      $0.split(separator: " ", omittingEmptySubsequences: true)
    }
    #expect(rows.count == 4)
    #expect(rows[1].joined(separator: " ") == "harbour eth0 4 none everything")
    #expect(rows[2].joined(separator: " ") == "mobile (chosen) 1 10.1 MB 10.0 MB authority, then a=1, *")
    #expect(
      rows[3].joined(separator: " ") == "satellite ppp0 1 10.1 MB 10.0 MB authority alone, for 2 h 0 min \(waiting)")
    let json = try ExtendedJSON.parseMap(Array(server.run(["links", "--json"]).output.utf8)).list("links")
    #expect(json.map { $0.number("waitingCost") } == [0, 9_000, 9_000])
    #expect(
      try server.run(["links", "--use=satellite"]).output
        == "every link is of the class satellite, but those on this machine itself that no rule names\n")
    #expect(try server.run(["links", "--use=auto"]).output == "each link is of its own class\n")
    #expect(node.linksUsed == ["satellite", "auto"])
    #expect(try server.run(["links", "--use=balloon"]).status == 2)
  }
}
