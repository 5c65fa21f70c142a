import Foundation
import Replication
import TestSupport
import Testing
import Wire

@testable import SeameshCommand

@Suite("Nodes in the foreground", .enabled(if: FileManager.default.isExecutableFile(atPath: commandPath)))
struct RunTests {
  let base = NSTemporaryDirectory() + "/seamesh-run-" + String(UUID().uuidString.prefix(8))

  /// A node that runs as a process of its own, stopped when this goes.
  final class Running {
    let process = Process()
    let ready: ValueMap
    let log: String

    init(_ directory: String, _ arguments: [String]) throws {
      let parent = URL(fileURLWithPath: directory).deletingLastPathComponent().path
      try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
      let (output, log) = (directory + ".out", directory + ".err")
      for path in [output, log] { try Data().write(to: URL(fileURLWithPath: path)) }
      self.log = log
      process.executableURL = URL(fileURLWithPath: commandPath)
      process.arguments =
        ["run", "--data=\(directory)", "--listen=127.0.0.1:0", "--no-discovery", "--json"] + arguments
      process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
      process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
      try process.run()
      var line: ValueMap?
      _ = waitUntil {
        line = (try? Data(contentsOf: URL(fileURLWithPath: output))).flatMap { try? ExtendedJSON.parseMap(Array($0)) }
        return line != nil
      }
      let complaint = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      ready = try #require(line, "no ready line: \(complaint)")
    }

    func stop(_ signal: Int32 = SIGTERM) -> Int32 {
      kill(process.processIdentifier, signal)
      process.waitUntilExit()
      return process.terminationStatus
    }

    deinit { if process.isRunning { process.terminate() } }
  }

  private func seamesh(_ directory: String, _ arguments: String..., input: String = "") throws -> CommandResult {
    try run(commandPath, arguments + ["--data=\(directory)"], input: input, environment: ["PATH": "/usr/bin:/bin"])
  }

  @Test("a first run makes a fleet, says so, and a signal ends it with status 0", arguments: [SIGTERM, SIGINT])
  func firstRun(signal: Int32) throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let node = try Running(base + "/a", ["--api=127.0.0.1:0"])
    #expect(node.ready["event"] == .string("ready"))
    #expect(node.ready["newFleet"] == .bool(true))
    #expect(node.ready["note"]?.shownText.contains("seamesh join CODE") == true)
    #expect(node.ready["api"]?.map?["socket"] == .string(Text(base + "/a/api.sock")))
    #expect(node.ready["api"]?.map?["url"]?.shownText.hasPrefix("http://127.0.0.1:") == true)
    #expect(node.ready["listen"]?.items.first?.shownText.hasPrefix("127.0.0.1:") == true)
    #expect(try seamesh(base + "/a", "put", "p", "c", "x", input: "{\"n\":1}").status == 0)
    #expect(node.stop(signal) == 0)
    #expect(!FileManager.default.fileExists(atPath: base + "/a/api.sock"))
    let again = try Running(base + "/a", ["--closed", "--fleet=other"])
    #expect(again.ready["newFleet"] == .bool(false))
    let warnings = try String(contentsOfFile: again.log, encoding: .utf8)
    #expect(warnings.contains("--fleet, --closed: for a new fleet alone"), "\(warnings)")
    #expect(again.ready["device"] == node.ready["device"])
    #expect(try seamesh(base + "/a", "get", "p", "c", "x").output == "{\"_id\":\"x\",\"n\":1}\n")
    #expect(again.stop() == 0)
  }

  @Test("a directory takes one node at a time, and one fleet for good")
  func oneNode() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let founded = try seamesh(base + "/a", "init", "--fleet=F", "--user=ann", "--json")
    #expect(founded.status == 0)
    #expect(try seamesh(base + "/a", "init").status == 1)
    let node = try Running(base + "/a", [])
    #expect(node.ready["fleet"] == (try ExtendedJSON.parseMap(Array(founded.output.utf8)))["fleet"])
    let second = try seamesh(base + "/a", "run", "--listen=127.0.0.1:0", "--no-discovery")
    #expect(second.status == 1 && second.error.hasPrefix("seamesh: "), "\(second.error)")
    #expect(try seamesh(base + "/a", "status").output.contains("ann"))
    #expect(node.stop() == 0)
  }

  @Test("an invitation lets a second device in, with and without a running node")
  func joining() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let first = try Running(base + "/a", [])
    let code =
      try seamesh(base + "/a", "invite", "--user=bob").output.split(separator: "\n").first.map(String.init) ?? ""
    let peer = "--peer=\(first.ready["listen"]?.items.first?.shownText ?? "")"
    let joined = try run(commandPath, ["join", "-", peer, "--label=tender", "--data=\(base)/b"], input: code)
    #expect(joined.status == 0, "\(joined.error)")
    #expect(try seamesh(base + "/a", "devices").output.contains("tender"))
    #expect(first.stop() == 0)
    for path in ["\(base)/none/x.svg", base] {
      let unsaved = try seamesh(base + "/a", "invite", "--user=eve", "--qr=\(path)")
      #expect(unsaved.isRefusal && unsaved.status == 1 && unsaved.error.contains("cannot write"), "\(unsaved)")
    }
    #expect(try !seamesh(base + "/a", "invites").output.contains("eve"))
    let drawn = try seamesh(base + "/a", "invite", "--user=eve", "--role=amdin", "--qr=\(base)/x.svg")
    #expect(drawn.status == 0 && FileManager.default.fileExists(atPath: base + "/x.svg"))
    #expect(drawn.errors.count == 1 && drawn.error.contains("has the role amdin yet"), "\(drawn.error)")
    let offline = try seamesh(base + "/a", "invite", "--user=eve", "--json")
    #expect(offline.status == 0 && offline.output.contains("\"code\":"))
    #expect(try seamesh(base + "/c", "invite", "--user=eve").status == 5)
    #expect(try seamesh(base + "/c", "join", "NOTACODE").status == 2)
  }

  @Test("a token that others could read is replaced, and the log says so without it")
  func tokenInTheOpen() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let token = base + "/a/api.token"
    func logOfRun() throws -> String {
      let node = try Running(base + "/a", ["--api=127.0.0.1:0"])
      #expect(node.stop() == 0)
      return try String(contentsOfFile: node.log, encoding: .utf8)
    }
    let sentence = "others could read api.token: it holds a new token, and who has the old one is not let in"
    #expect(try !logOfRun().contains(sentence))
    let old = try String(contentsOfFile: token, encoding: .utf8)
    try #require(chmod(token, 0o644) == 0)
    let log = try logOfRun()
    let new = try String(contentsOfFile: token, encoding: .utf8)
    #expect(log.contains(sentence) && new != old, "\(log)")
    #expect(![old, new].contains { log.contains($0.dropLast()) })
    #expect(try !logOfRun().contains(sentence) && String(contentsOfFile: token, encoding: .utf8) == new)
  }

  @Test("the configuration file stands in for options, and mistakes in either are named")
  func configuration() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    #expect(try seamesh(base + "/a", "init").status == 0)
    try #"{"api":"127.0.0.1:0","log-level":"error"}"#.write(
      toFile: base + "/a/seamesh.json", atomically: false, encoding: .utf8)
    let node = try Running(base + "/a", [])
    #expect(node.ready["api"]?.map?["url"]?.shownText.hasPrefix("http://127.0.0.1:") == true)
    #expect(node.stop() == 0)
    for option in ["--listen=x", "--peer=x", "--api=0.0.0.0:1", "--log-level=loud"] {
      #expect(try seamesh(base + "/b", "run", option).status == 2, "\(option)")
    }
    #expect(!FileManager.default.fileExists(atPath: base + "/b"))
  }

  @Test("a node's directory is never taken for an empty one and cleared, whatever became of its fleet file")
  func nothingCleared() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let directory = base + "/a"
    #expect(try seamesh(directory, "init").status == 0)
    func content(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name)) }
    let key = try content("device.key")
    for mode in [0o644, 0o000] {
      #expect(chmod(directory + "/fleet.id", mode_t(mode)) == 0)
      // The superuser reads what nobody may read.
      guard mode != 0 || geteuid() != 0 else { continue }
      let refused = try seamesh(directory, "run", "--listen=127.0.0.1:0", "--no-discovery")
      #expect(refused.status == 1 && refused.error.contains("fleet.id"), "\(refused.error)")
      #expect(try seamesh(directory, "init").status == 1)
    }
    #expect(chmod(directory + "/fleet.id", 0o600) == 0)
    let node = try Running(directory, [])
    #expect(try seamesh(directory, "put", "p", "c", "x", input: "{\"n\":1}").status == 0)
    #expect(node.stop() == 0)
    try FileManager.default.moveItem(atPath: directory + "/fleet.id", toPath: base + "/fleet.id")
    for verb in ["run", "init"] {
      let lost = try seamesh(directory, verb)
      #expect(lost.status == 1 && lost.error.contains("fleet.id has gone"), "\(lost.error)")
    }
    try FileManager.default.moveItem(atPath: base + "/fleet.id", toPath: directory + "/fleet.id")
    #expect(try content("device.key") == key)
    let again = try Running(directory, [])
    #expect(try seamesh(directory, "get", "p", "c", "x").status == 0)
    #expect(again.stop() == 0)
  }

  private func content(_ path: String) -> Data? { FileManager.default.contents(atPath: path) }

  @Test("a first run says that it makes a fleet before it does; after a join that was cut off it makes none")
  func noUnwantedFleet() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let first = try Running(base + "/a", [])
    let said = try String(contentsOfFile: first.log, encoding: .utf8)
    #expect(said.hasPrefix("{\"warning\":\"there is no node in \(base)/a yet: making a new fleet"), "\(said)")
    let invited = try seamesh(base + "/a", "invite", "--user=bob", "--json")
    let code = try ExtendedJSON.parseMap(Array(invited.output.utf8)).text("code")
    #expect(first.stop() == 0)

    let join = Process()
    join.executableURL = URL(fileURLWithPath: commandPath)
    join.arguments = ["join", code, "--data=\(base)/b"]
    (join.standardOutput, join.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try join.run()
    #expect(waitUntil { content(base + "/b/device.key") != nil })
    kill(join.processIdentifier, SIGKILL)
    join.waitUntilExit()
    let key = content(base + "/b/device.key")
    let refused = try seamesh(base + "/b", "run", "--listen=127.0.0.1:0", "--no-discovery")
    #expect(refused.status == 1 && refused.error.contains("run seamesh join CODE --data \(base)/b"), "\(refused.error)")
    #expect(refused.error.split(separator: "\n").count == 1 && content(base + "/b/device.key") == key)
    // Asked for by name, a new fleet is made, and the key of the join is kept.
    let founded = try seamesh(base + "/b", "init", "--json")
    let aside = try ExtendedJSON.parseMap(Array(founded.output.utf8)).text("aside")
    #expect(founded.status == 0 && content(aside + "/device.key") == key, "\(founded.error)")
    #expect(try seamesh(base + "/c", "init").output.contains("Next: seamesh run --data=\(base)/c"))
  }

  @Test("a node that was killed and lost its log says what may be lost, and goes on under another replica")
  func lostLog() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let node = try Running(base + "/a", [])
    #expect(try seamesh(base + "/a", "put", "p", "c", "x", input: "{\"n\":1}").status == 0)
    func replica() throws -> String {
      try ExtendedJSON.parseMap(Array(seamesh(base + "/a", "status", "--json").output.utf8)).text("replica")
    }
    let before = try replica()
    #expect(node.stop(SIGKILL) == SIGKILL)
    let second = try Running(base + "/a", [])
    #expect(try replica() == before)
    #expect(try !seamesh(base + "/a", "doctor").output.contains("seamesh.db-wal"))
    #expect(second.stop(SIGKILL) == SIGKILL)
    try FileManager.default.removeItem(atPath: base + "/a/seamesh.db-wal")
    let third = try Running(base + "/a", [])
    #expect(try seamesh(base + "/a", "doctor").output.contains("seamesh.db-wal was missing or empty"))
    #expect(try seamesh(base + "/a", "put", "p", "c", "y", input: "{\"n\":1}").status == 0)
    #expect(try replica() != before)
    #expect(third.stop() == 0)
    #expect(!FileManager.default.fileExists(atPath: base + "/a/seamesh.db-wal"))
  }

  @Test("a node whose store is lost waits for its fleet, ends cleanly when told to, and fetches everything from a peer")
  func lostStore() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let first = try Running(base + "/a", [])
    let peer = "--peer=\(first.ready["listen"]?.items.first?.shownText ?? "")"
    let code = try ExtendedJSON.parseMap(Array(seamesh(base + "/a", "invite", "--user=bob", "--json").output.utf8))
    #expect(try seamesh(base + "/b", "join", code.text("code"), peer).status == 0)
    #expect(try seamesh(base + "/a", "put", "p", "c", "x", input: "{\"n\":1}").status == 0)
    try FileManager.default.removeItem(atPath: base + "/b/seamesh.db")

    let waiting = Process()
    waiting.executableURL = URL(fileURLWithPath: commandPath)
    waiting.arguments = ["run", "--data=\(base)/b", "--listen=127.0.0.1:0", "--no-discovery", "--peer=127.0.0.1:1"]
    let complaints = Pipe()
    (waiting.standardOutput, waiting.standardError) = (FileHandle.nullDevice, complaints)
    try waiting.run()
    let said = String(decoding: complaints.fileHandleForReading.availableData, as: UTF8.self)
    #expect(said.hasPrefix("seamesh: seamesh.db has gone from \(base)/b: waiting for a node of the fleet"), "\(said)")
    waiting.terminate()
    waiting.waitUntilExit()
    #expect(waiting.terminationReason == .exit && waiting.terminationStatus == 0)

    let second = try Running(base + "/b", [peer])
    #expect(second.ready["storeFetched"] == .bool(true))
    #expect(waitUntil { (try? seamesh(base + "/b", "get", "p", "c", "x").status) == 0 })
    #expect(second.stop() == 0 && first.stop() == 0)
  }

  @Test("a directory that others may enter is refused with the command that closes it")
  func openDirectory() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    #expect(try seamesh(base + "/a", "init").status == 0)
    #expect(chmod(base + "/a", 0o755) == 0)
    let refused = try seamesh(base + "/a", "run", "--listen=127.0.0.1:0", "--no-discovery")
    #expect(refused.status == 1 && refused.error.contains("chmod 700"), "\(refused.error)")
  }

  @Test("a log file that cannot be opened, and an address that cannot be listened on, are named")
  func unusable() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    #expect(try seamesh(base + "/a", "init").status == 0)
    let log = try seamesh(base + "/a", "run", "--listen=127.0.0.1:0", "--no-discovery", "--log-file=/nonexistent/log")
    #expect(log.status == 1 && log.error.contains("/nonexistent/log"), "\(log.error)")
    let address = try seamesh(base + "/a", "run", "--listen=192.0.2.1:7000", "--no-discovery")
    #expect(address.status == 1 && address.error.contains("192.0.2.1:7000"), "\(address.error)")
  }

  @Test("names that no statement can hold are refused with one sentence, before anything is made")
  func names() throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    let long = String(repeating: "x", count: 256)
    for option in [
      "--user=", "--user=\(long)", "--user=a\nb", "--label=\(long)", "--fleet=\(long)", "--profile={\"a\":1}",
      "--profile={\"a\":\"\(long)\"}",
    ] {
      let refused = try seamesh(base + "/a", "init", option)
      #expect(refused.status == 2 && refused.error.contains("255 bytes"), "\(option): \(refused.error)")
      #expect(!FileManager.default.fileExists(atPath: base + "/a/device.key"))
    }
    #expect(try seamesh(base + "/a", "init").status == 0)
    for option in ["--user=", "--user=a\nb"] { #expect(try seamesh(base + "/a", "invite", option).status == 2) }
  }
}
