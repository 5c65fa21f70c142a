import Identity
import Links
import Replication
import Testing

@testable import Seamesh
@testable import Transport

/// One node after another is asked for the fleet's statements.
@Suite("Whom an inquiry asks")
struct AskedNodesTests {
  private func connection(_ number: UInt64, round: UInt64) -> OpenedConnection {
    OpenedConnection(
      id: ConnectionID(number: number), origin: .dialled(tag: round), remote: SocketAddress(.ipv4(1), port: 7),
      path: LinkPath(interface: "", remote: .ipv4(1)),
      peerKey: SigningKey(random: { [UInt8](repeating: 1, count: $0) }).publicKey, exporter: .zero,
      openedAt: MonotonicTime(milliseconds: 0))
  }

  @Test("the end of a connection to a node that was asked before is no answer of the one that is asked now")
  func lateEnd() {
    var asked = AskedNodes()
    let (first, second) = (ConnectionID(number: 1), ConnectionID(number: 2))
    asked.opened(connection(1, round: asked.begin().round))
    asked.end()
    asked.opened(connection(2, round: asked.begin().round))
    let late = asked.closed(first).endsRound
    let isPresent = asked.failed(second)
    // Once: that it then closes says nothing new.
    let again = asked.closed(second).endsRound
    #expect(!late && isPresent && !again)
  }

  @Test("a dial that failed ends its own round, and after it had its time none")
  func dials() {
    var asked = AskedNodes()
    let first = asked.begin().round
    asked.end()
    var ends = [asked.failed(round: first)]
    let second = asked.begin().round
    for round in [first, second, second] { ends.append(asked.failed(round: round)) }
    #expect(ends == [false, false, true, false])
  }

  @Test("statements count for the node that sent them, and one that was asked before may still end well")
  func statements() throws {
    let founding = try FleetFounding.make(fleetName: "f", user: "u", label: "l") { [UInt8](repeating: 7, count: $0) }
    var asked = AskedNodes()
    let (first, second) = (ConnectionID(number: 1), ConnectionID(number: 2))
    asked.opened(connection(1, round: asked.begin().round))
    let takesFirst = asked.collect(founding.statements, from: first)
    asked.end()
    asked.opened(connection(2, round: asked.begin().round))
    #expect(asked.statements(from: first).count == founding.statements.count && asked.statementCount == 0)
    let takesSecond = asked.collect([founding.statements[0]], from: second)
    #expect(takesFirst && takesSecond && asked.statementCount == 1)
    #expect(asked.statements(from: first).count == founding.statements.count)
    let outdated = asked.begin().outdated
    #expect(outdated == [first], "what it would go on to send takes the link from the others")
    #expect(asked.statements(from: first).isEmpty && asked.statements(from: second).count == 1)
  }

  @Test("who sends more bytes of statements than a fleet has is asked no further")
  func byteLimit() throws {
    let large = try large()
    var asked = AskedNodes()
    let id = ConnectionID(number: 1)
    asked.opened(connection(1, round: asked.begin().round))
    let takes = (0...256).map { _ in asked.collect([large], from: id) }
    #expect(takes == [Bool](repeating: true, count: 256) + [false] && asked.statementCount == 256)
  }

  /// A statement of a mebibyte.
  private func large() throws -> Statement {
    let founding = try FleetFounding.make(fleetName: "f", user: "u", label: "l") { [UInt8](repeating: 7, count: $0) }
    let small = try #require(founding.statements.first)
    return Statement(
      fleet: small.fleet, issuer: small.issuer, sequence: small.sequence, previous: small.previous, scope: small.scope,
      body: small.body, signature: small.signature, id: small.id, encoded: [UInt8](repeating: 0, count: 1 << 20))
  }

  @Test("of those that say nothing the latest few are waited for, so that there is always room to ask another one")
  func silent() {
    var asked = AskedNodes()
    var open: Set<ConnectionID> = []
    var most = 0
    for number in 1...300 as ClosedRange<UInt64> {
      let (round, outdated) = asked.begin()
      for id in outdated {
        open.remove(id)
        _ = asked.closed(id)
      }
      asked.opened(connection(number, round: round))
      open.insert(ConnectionID(number: number))
      most = max(most, open.count)
      asked.end()
    }
    #expect(most == AskedNodes.silentLimit + 2)
    #expect(open == Set((291...300).map { ConnectionID(number: $0) }))
  }

  @Test("several that were asked before have no more room together than one alone; the latest of them has its own")
  func lateTogether() throws {
    let large = try large()
    var asked = AskedNodes()
    for number in 1...4 as ClosedRange<UInt64> {
      asked.opened(connection(number, round: asked.begin().round))
      asked.end()
    }
    let late = [1, 2].map { id in
      (0..<200).count { _ in asked.collect([large], from: ConnectionID(number: UInt64(id))) }
    }
    let alone = [3, 4].map { id in (0..<257).count { _ in asked.collect([large], from: ConnectionID(number: id)) } }
    #expect(late == [200, 56] && alone == [256, 256])
  }

  @Test("what comes behind the end of a connection that was given up is not kept")
  func dropped() throws {
    var asked = AskedNodes()
    let id = ConnectionID(number: 1)
    asked.opened(connection(1, round: asked.begin().round))
    let large = try large()
    let takes = asked.collect([large], from: id)
    asked.drop(id)
    let takesLate = asked.collect([large], from: id)
    #expect(takes && takesLate && asked.statements(from: id).isEmpty)
  }
}
