import Foundation
import Replication
import Testing
import Wire

@testable import SeameshCommand

@Suite("Setting up a device", .enabled(if: isCommandBuilt))
struct SetupVerbTests {
  private let base = NSTemporaryDirectory() + "seamesh-setup-" + String(UUID().uuidString.prefix(8))

  private func seamesh(_ name: String, _ arguments: String..., input: String = "") throws -> CommandResult {
    try run(
      commandPath, arguments + ["--data=\(base)/\(name)"], input: input,
      environment: ["PATH": "/usr/bin:/bin", "HOME": base])
  }

  private func made() throws {
    try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: true)
  }

  @Test("init says which fleet and device it made, where the root key is, and what comes next")
  func initialising() throws {
    try made()
    defer { try? FileManager.default.removeItem(atPath: base) }
    let result = try seamesh(
      "a", "init", "--fleet=Galapagos patrol", "--user=ann@x", "--label=bridge", "--profile={\"agency\":\"W\"}")
    #expect(result.status == 0 && result.error.isEmpty)
    #expect(result.lines.first?.hasPrefix("new fleet ") == true)
    #expect(result.lines.last == "Next: seamesh run --data=\(base)/a")
    #expect(result.output.contains("root key is \(base)/a/fleet-root.key"))
    let mode = try FileManager.default.attributesOfItem(atPath: base + "/a")[.posixPermissions] as? Int
    #expect(mode == 0o700)
    let again = try seamesh("a", "init")
    #expect(again.isRefusal && again.status == 1)
    let json = try ExtendedJSON.parseMap(Array(seamesh("b", "init", "--json").output.utf8))
    #expect(Set(json.entries.map(\.key.string)) == ["fleet", "device", "rootKey", "directory", "aside"])
    #expect(json.text("directory") == base + "/b")
  }

  @Test("names that no device can have are mistakes of usage with init, run and join, before anything is made or said")
  func namesOfNobody() throws {
    try made()
    defer { try? FileManager.default.removeItem(atPath: base) }
    let long = String(repeating: "x", count: 300)
    for option in ["--user=", "--user=\(long)", "--label=\(long)", "--fleet=\(long)", "--profile={\"a\":1}"] {
      for verb in [["init"], ["run", "--no-discovery"]] {
        let refused = try run(commandPath, verb + [option, "--data=\(base)/n"], environment: ["HOME": base])
        #expect(refused.isRefusal && refused.status == 2, "\(verb) \(option.prefix(20)): \(refused)")
      }
    }
    let join = try seamesh("n", "join", "AEBAGBA", "--label=\(long)")
    #expect(join.status == 2 && join.error.contains("a label has at most"), "\(join)")
    #expect(!FileManager.default.fileExists(atPath: base + "/n"))
  }

  @Test("init and join on a running node's directory say that it is a node's already, and not to stop it")
  func onRunningNode() throws {
    let node = try RunTests.Running(base + "/a", [])
    defer {
      _ = node.stop()
      try? FileManager.default.removeItem(atPath: base)
    }
    let invited = try seamesh("a", "invite", "--user=b", "--json")
    let code = try ExtendedJSON.parseMap(Array(invited.output.utf8)).text("code")
    for verb in [["init"], ["join", code]] {
      let refused = try run(commandPath, verb + ["--data=\(base)/a"], environment: ["HOME": base])
      #expect(refused.isRefusal && refused.status == 1, "\(refused)")
      #expect(
        refused.error.contains("is a node's directory already") && !refused.error.contains("stop it"), "\(refused)")
    }
  }

  @Test("init closes an empty directory to others, and refuses what is no directory")
  func places() throws {
    try made()
    defer { try? FileManager.default.removeItem(atPath: base) }
    try "x".write(toFile: base + "/file", atomically: false, encoding: .utf8)
    #expect(try seamesh("file", "init").isRefusal)
    #expect(try seamesh("file/inner", "init").isRefusal)
    // Nor does run say that it makes a fleet there.
    for name in ["file", "file/inner"] {
      let run = try seamesh(name, "run", "--no-discovery")
      #expect(run.error == "seamesh: \(base)/\(name) is not a directory, or lies in none.\n" && run.status == 1)
    }
    try FileManager.default.createDirectory(
      atPath: base + "/open", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    // Nothing is in it yet: it is closed before the first key is made.
    #expect(try seamesh("open", "init").status == 0)
    let mode = try FileManager.default.attributesOfItem(atPath: base + "/open")[.posixPermissions] as? Int
    #expect(mode == 0o700)
  }

  @Test("a code that is none is a mistake of usage, from the command line and from standard input")
  func codes() throws {
    try made()
    defer { try? FileManager.default.removeItem(atPath: base) }
    for code in ["x", "NOTACODE", "AEBAGBA"] {
      let refused = try seamesh("a", "join", code)
      #expect(refused.isRefusal && refused.status == 2, "\(refused.error)")
      #expect(try seamesh("a", "join", "-", input: code + "\n").status == 2)
    }
    #expect(try seamesh("a", "join", "-", input: String(repeating: "A", count: 100_000)).isRefusal)
    #expect(try seamesh("a", "join", "X", "--peer=nowhere").error.contains("--peer takes HOST:PORT"))
    #expect(!FileManager.default.fileExists(atPath: base + "/a/device.key"))
  }

  @Test("every verb that needs a running node says so with status 5, and with the directory")
  func withoutNode() throws {
    try made()
    defer { try? FileManager.default.removeItem(atPath: base) }
    let operands = ["get": ["p", "c", "i"], "delete": ["p", "c", "i"], "patch": ["p", "c", "i", "{}"]]
    let own: [String: [String]] = [
      "put": ["p", "c", "-"], "find": ["p", "c"], "watch": ["p", "c"], "import": ["p", "c", "-"], "export": ["p"],
      "subscribe": ["p"], "unsubscribe": ["p"], "invite": ["--user=x"], "backup": ["/tmp/x"], "status": [], "peers": [],
      "devices": [], "partitions": [], "doctor": [],
      "grant": ["everyone", "read", "*"], "permissions": [], "rules": [], "revoke": ["x"],
      "retire": ["x", "--dry-run"],
      "raise": ["x"], "promote": ["x", "--yes"],
    ]
    for (verb, arguments) in operands.merging(own, uniquingKeysWith: { $1 }) {
      let input = verb == "put" || verb == "import" ? "{}" : ""
      let refused = try run(commandPath, [verb] + arguments + ["--data=\(base)/none"], input: input)
      #expect(refused.status == 5 && refused.output.isEmpty, "\(verb): \(refused.error)")
      #expect(refused.error.contains("no node is running on \(base)/none"), "\(verb): \(refused.error)")
    }
    #expect(!FileManager.default.fileExists(atPath: base + "/none"))
  }

  @Test("restore without a device's keys, or from what is no backup, changes nothing")
  func restoring() throws {
    try made()
    defer { try? FileManager.default.removeItem(atPath: base) }
    let nowhere = try seamesh("none", "restore", "/nonexistent")
    #expect(nowhere.isRefusal && nowhere.status == 3)
    #expect(try seamesh("a", "init").status == 0)
    let before = try FileManager.default.contentsOfDirectory(atPath: base + "/a").sorted()
    try String(repeating: "no backup", count: 1_000).write(toFile: base + "/junk", atomically: false, encoding: .utf8)
    let junk = try seamesh("a", "restore", base + "/junk")
    #expect(junk.isRefusal && junk.status == 1 && junk.error.contains("no backup"), "\(junk.error)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: base + "/a").sorted() == before)
  }
}

@Suite("Reports to try things out with", .enabled(if: isCommandBuilt))
struct SampleVerbTests {
  private func sample(_ arguments: String...) throws -> CommandResult {
    try run(commandPath, ["sample"] + arguments, environment: ["HOME": "/nonexistent"])
  }

  @Test("one seed gives the same reports, more of them begin with the same, another seed gives others")
  func seeds() throws {
    let ten = try sample("--count=10").lines
    #expect(try ten.count == 10 && sample("--count", "10", "--seed", "1").lines == ten)
    let more = try sample("--count=300").lines
    #expect(more.count == 300 && Array(more.prefix(10)) == ten && Set(more).count == 300)
    #expect(try sample("--count=10", "--seed=2").lines != ten)
    #expect(try sample("--count=0").output.isEmpty && sample().lines.count == 100)
    for line in ten { #expect(try !ExtendedJSON.parseMap(Array(line.utf8)).text("agency").isEmpty) }
  }

  @Test("duty entries are other documents, of the same agencies")
  func duty() throws {
    let (reports, duty) = (try sample("--count=20").lines, try sample("--count=20", "--duty").lines)
    #expect(duty.count == 20 && Set(duty).isDisjoint(with: reports))
    func agencies(_ lines: [String]) throws -> Set<String> {
      Set(try lines.map { try ExtendedJSON.parseMap(Array($0.utf8)).text("agency") })
    }
    #expect(try !agencies(duty).isDisjoint(with: agencies(reports)))
  }

  @Test("a count or seed that is no whole number is a mistake of usage", arguments: ["x", "-1", "1.5", ""])
  func refusals(text: String) throws {
    #expect(try sample("--count=\(text)").status == 2 && sample("--seed=\(text)").status == 2)
    let simulated = try run(commandPath, ["simulate", "--count=\(text)"])
    #expect(simulated.isRefusal && simulated.status == 2, "\(simulated.error)")
  }

  @Test("a simulated world is told by its figures, and no world at all is a mistake of usage")
  func simulating() throws {
    let result = try run(commandPath, ["simulate", "--seed=1", "--count=1"])
    #expect(result.status == 0 && result.output.hasPrefix("1 worlds, ") && result.output.hasSuffix(" 0 failed\n"))
    let json = try run(commandPath, ["simulate", "--seed=1", "--count=2", "--counts", "--json"])
    let told = try ExtendedJSON.parseMap(Array(json.output.utf8))
    #expect(told.number("worlds") == 2 && told["failures"]?.items.isEmpty == true && told["counts"] != nil)
    for options in [["--count=0"], ["--seed=18446744073709551615", "--count=2"]] {
      #expect(try run(commandPath, ["simulate"] + options).status == 2)
    }
  }
}
