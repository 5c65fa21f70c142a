import Foundation
import TestSupport
import Testing

@testable import Forwarding

@Suite(
  "What verifying a ledger writes on the disk goes with it",
  .enabled(if: TestPostgreSQL.isThere, TestPostgreSQL.reason), .serialized)
struct ScratchDirectoryTests {
  /// Processes that verify a ledger and do not come to their end: somebody has locked its documents.
  private final class Verifying {
    let server: TestPostgreSQL
    let place: String
    private let relay: ForwardingNode
    private let owner: PostgreSQLConnection

    init() throws {
      (server, relay) = try (TestPostgreSQL(), ForwardingNode())
      try relay.setUp(server)
      try relay.forward(to: server.relayURL())
      try relay.put("agency=G", "r", "text")
      try relay.waitForLedger(server)
      try relay.waitForState(.caughtUp)
      relay.stop()
      place = server.directory + "/scratch"
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
      owner = try server.owner()
      try owner.script("BEGIN; LOCK TABLE seamesh.documents IN ACCESS EXCLUSIVE MODE")
    }

    deinit { relay.stop() }

    /// Answers once its store is open.
    func start() throws -> (process: Process, directory: String) {
      let before = Set(directories)
      let process = try startCommand(
        ["verify-ledger", "--forward=\(server.ownerURL())"], in: server.directory, ["TMPDIR": place])
      let isOpen = waitUntil { [self] in
        directories.contains { !before.contains($0) && names("\(place)/\($0)").contains("seamesh.db-wal") }
      }
      #expect(isOpen)
      return (process, try #require(directories.first { !before.contains($0) }))
    }

    var directories: [String] { names(place).sorted() }

    func names(_ path: String) -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }

    func goOn() throws { try owner.script("ROLLBACK") }
  }

  @Test(
    "an interrupt, an end that was asked for and a terminal that goes away end it as a signal does, and leave nothing",
    arguments: [SIGINT, SIGTERM, SIGHUP])
  func ended(_ number: Int32) throws {
    let verifying = try Verifying()
    // Of tests that run under nohup themselves it would be overlooked.
    let before = signal(number, SIG_DFL)
    defer { signal(number, before) }
    let (process, _) = try verifying.start()
    kill(process.processIdentifier, number)
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == number)
    #expect(verifying.directories.isEmpty)
  }

  @Test("what a killed process left goes at the next start; that of a living one, and what is another's, stays")
  func killed() throws {
    let verifying = try Verifying()
    let killed = try verifying.start()
    kill(killed.process.processIdentifier, SIGKILL)
    killed.process.waitUntilExit()
    #expect(verifying.directories == [killed.directory])
    let strangers = ["seamesh-scratch-of-somebody", "another"]
    for name in strangers {
      try FileManager.default.createDirectory(
        atPath: "\(verifying.place)/\(name)", withIntermediateDirectories: false)
    }

    let living = try verifying.start()
    #expect(verifying.directories == (strangers + [living.directory]).sorted())
    let second = try verifying.start()
    #expect(verifying.directories == (strangers + [living.directory, second.directory]).sorted())
    #expect(verifying.names("\(verifying.place)/\(living.directory)").contains("seamesh.db"))

    try verifying.goOn()
    for process in [living.process, second.process] {
      process.waitUntilExit()
      #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    }
    #expect(verifying.directories == strangers.sorted())
  }

  @Test("an interrupt that was to be overlooked, as under nohup, ends nothing")
  func overlooked() throws {
    let verifying = try Verifying()
    let before = signal(SIGHUP, SIG_IGN)
    defer { signal(SIGHUP, before) }
    let (process, _) = try verifying.start()
    kill(process.processIdentifier, SIGHUP)
    try verifying.goOn()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit && process.terminationStatus == 0)
    #expect(verifying.directories.isEmpty)
  }
}
