import Foundation
import LocalAPI
import LocalAPITestSupport
import Replication
import Seamesh
import TestSupport
import Testing
import Wire

@testable import SeameshCommand

@Suite("The command against a node", .enabled(if: FileManager.default.isExecutableFile(atPath: commandPath)))
struct CommandTests {
  let node = FakeNode()
  let server: TestedServer

  init() throws { server = try TestedServer(node) }

  private func seamesh(_ arguments: String..., input: String = "") throws -> CommandResult {
    try run(
      commandPath, arguments, input: input,
      environment: ["SEAMESH_DATA": server.directory, "PATH": "/usr/bin:/bin", "HOME": server.directory])
  }

  private func file(_ name: String, _ content: String) throws -> String {
    let path = server.directory + "/" + name
    try content.write(toFile: path, atomically: false, encoding: .utf8)
    return path
  }

  @Test("a document is put, shown, patched, found and deleted")
  func documents() throws {
    let report = try file("r.json", #"{"n":1,"when":{"$date":"2020-06-01T00:00:00Z"}}"#)
    #expect(try seamesh("put", "agency=W", "R", "a/b", report).output.hasPrefix("created a/b (local-durable"))
    #expect(try seamesh("get", "agency=W", "R", "a/b").output.hasPrefix(#"{"_id":"a/b","n":1,"when":{"$date":"#))
    #expect(try seamesh("patch", "agency=W", "R", "a/b", "--set=n=2").output.hasPrefix("changed a/b (local-durable"))
    #expect(try seamesh("patch", "agency=W", "R", "a/b", #"{"$set":{"m":3}}"#).status == 0)
    let found = try seamesh("find", "agency=W", "R", "--sort={\"z\":1,\"a\":-1}", "--limit=3", "--filter={\"$or\":[]}")
    #expect(found.output.contains(#""m":3,"n":2"#) && found.output.hasSuffix("}\n"))
    #expect(node.lastFind?.sort.map(\.path) == ["z", "a"])
    let etag = try seamesh("get", "agency=W", "R", "a/b", "--etag").output.trimmingCharacters(in: .newlines)
    #expect(try seamesh("delete", "agency=W", "R", "a/b", "--if-match=old").status == 1)
    #expect(try seamesh("delete", "agency=W", "R", "a/b", "--if-match=\(etag)").output == "deleted a/b\n")
    #expect(node.ids.isEmpty)
  }

  @Test("a document without ID keeps its _id, or gets one; one operand that names a file is the file")
  func ids() throws {
    #expect(try seamesh("put", "p", "c", input: #"{"_id":{"$oid":"5ed554a47527930d67194feb"}}"#).status == 0)
    #expect(try seamesh("put", "p", "c", "-", input: "{}").status == 0)
    #expect(try seamesh("put", "p", "c", try file("x.json", #"{"_id":7}"#)).status == 0)
    #expect(try seamesh("put", "p", "c", "s1", input: "{}").status == 0)
    #expect(node.ids.count == 4)
    #expect(Set(node.ids).isSuperset(of: [.int(7), .string("s1")]))
    let oid = "5ed554a47527930d67194feb"
    #expect(
      try seamesh("get", "p", "c", oid, "--id-type=oid", "--json").output
        == #"{"_id":{"$oid":"5ed554a47527930d67194feb"}}"# + "\n")
    #expect(try seamesh("get", "p", "c", "{\"$oid\":\"\(oid)\"}").status == 0)
    #expect(try seamesh("get", "p", "c", oid).status == 3)
    #expect(try seamesh("put", "p", "c", "s1", "--new", input: "{}").status == 1)
    #expect(try seamesh("put", "p", "c", "..", input: "{}").status == 0)
    #expect(Set(node.ids).contains(.string("..")))
  }

  @Test("exit statuses tell usage, absence, refusal and an unreachable node apart, each with one sentence")
  func statuses() throws {
    try node.subscribe("p")
    try node.subscribe("agency=Galapagos")
    let cases: [([String], Int32, String)] = [
      (["stauts"], 2, "did you mean status?"), (["get", "p", "c", "x"], 3, "no such document"),
      (["get", "agency=Galapgos", "c", "x"], 3, "nothing of agency=Galapgos; did you mean agency=Galapagos?"),
      (["delete", "room=7", "c", "x"], 3, "nothing of room=7; seamesh partitions shows what it holds"),
      (["put", "p", "c", "x", "/nonexistent"], 3, "No such file"), (["find", "p", "c", "--filter={"], 2, "not JSON"),
    ]
    for (arguments, status, text) in cases {
      let result = try run(commandPath, arguments, environment: ["SEAMESH_DATA": server.directory])
      #expect(result.status == status && result.output.isEmpty)
      #expect(result.error.hasPrefix("seamesh: ") && result.error.contains(text), "\(result.error)")
      #expect(result.error.split(separator: "\n").count == 1)
    }
    for verb in ["find", "export"] {
      let empty = try seamesh(verb, "agency=Galapgos", "c")
      #expect(empty.status == 0 && empty.error.hasSuffix("did you mean agency=Galapagos?\n"), "\(empty.error)")
      #expect(try seamesh(verb, "agency=Galapagos", "c").error.isEmpty)
    }
    node.fail(NodeError(.notPermitted, "you may not write here"))
    let refused = try seamesh("put", "p", "c", "x", input: "{}")
    #expect(refused.status == 4 && refused.error == "seamesh: you may not write here\n")
    let forMachines = try seamesh("put", "p", "c", "x", "--json", input: "{}")
    #expect(forMachines.status == 4 && forMachines.error == #"{"error":"you may not write here","status":4}"# + "\n")
    for name in ["fleet.id", "device.key"] { _ = try file(name, "a node's") }
    server.server.stop()
    let gone = try seamesh("status")
    #expect(gone.status == 5)
    #expect(gone.error == "seamesh: no node is running on \(server.directory); start it with: seamesh run\n")
    let named = try run(
      commandPath, ["status", "--data=\(server.directory)"], environment: ["HOME": "/nonexistent", "PATH": "/usr/bin"])
    #expect(named.status == 5)
    #expect(
      named.error == "seamesh: no node is running on \(server.directory); start it with: seamesh run "
        + "--data=\(server.directory)\n")
  }

  @Test("where no node lies, nobody is told to start one, which would found another fleet")
  func wrongDirectory() throws {
    func refusal(_ directory: String) throws -> String {
      let refused = try run(commandPath, ["status", "--data=\(directory)"], environment: ["HOME": "/nonexistent"])
      #expect(refused.isRefusal && refused.status == 5 && !refused.error.contains("seamesh run"), "\(refused.error)")
      return refused.error
    }
    let empty = server.directory + "/empty"
    try FileManager.default.createDirectory(
      atPath: empty, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    for directory in [empty, server.directory + "/none"] {
      #expect(
        try refusal(directory) == "seamesh: no node is running on \(directory), which holds none: name its directory "
          + "with --data, or make one with seamesh init --data=\(directory) or seamesh join CODE --data=\(directory)\n")
    }
    _ = try file("empty/setup.partial", "of a join that was cut off")
    #expect(try refusal(empty).contains("run seamesh join CODE --data \(empty) again"))
  }

  @Test("a document may begin with a byte order mark, in a file, on standard input and in a patch")
  func byteOrderMark() throws {
    #expect(try seamesh("put", "p", "c", try file("bom.json", "\u{feff}{\"_id\":\"a\",\"n\":1}")).status == 0)
    #expect(try seamesh("put", "p", "c", "b", input: "\u{feff}{\"n\":1}").status == 0)
    #expect(try seamesh("patch", "p", "c", "b", "\u{feff}{\"m\":2}").status == 0)
    #expect(try seamesh("get", "p", "c", "b").output == "{\"_id\":\"b\",\"m\":2,\"n\":1}\n")
    #expect(Set(node.ids) == [.string("a"), .string("b")])
  }

  @Test("an import sorts records by a field and puts aside what does not fit, with its line and reason")
  func importing() throws {
    let records = """
      [
       {"_id": 1, "agency": "W"},
       {"_id": 2, "agency": ""},
       {"_id": 3},
       {"_id": 4, "agency": 7},
       {"_id": 5, "agency": "X",
        "name": "Zoë"},
       {"_id": [6], "agency": "X"},
       {"_id": 7, "agency": "W", "agency": "W"},
       {"_id": 8, "agency": "W"}
      ]
      """
    let path = try file("reports.json", records)
    let result = try seamesh("import", "--partition-by=agency", "R", path, "--json")
    #expect(result.status == 1)
    let counts = try ExtendedJSON.parseMap(Array(result.output.utf8))
    #expect(counts["imported"] == .int(3) && counts["aside"] == .int(5))
    #expect(Set(node.ids) == [.int(1), .int(5), .int(8)])
    let aside = try String(contentsOfFile: counts["asideFile"]?.shownText ?? "", encoding: .utf8)
    let entries = try aside.split(separator: "\n").map { try ExtendedJSON.parseMap(Array($0.utf8)) }
    #expect(entries.map { $0["line"] } == [3, 4, 5, 8, 9].map { .int($0) })
    #expect(
      entries.map { $0["reason"]?.shownText.prefix(9) ?? "" }.prefix(3) == ["agency is", "agency is", "agency is"])
    #expect(entries.first?["record"] == .string(#"{"_id": 2, "agency": ""}"#))
    #expect(result.error.contains(#""line":3,"reason":"agency is empty""#), "\(result.error)")
  }

  @Test("a value that makes no partition puts its record aside and stops no other")
  func unfitPartitions() throws {
    let records = #"{"_id":1,"agency":"A*"}"# + "\n" + #"{"_id":2,"agency":"x\ny"}"# + "\n" + #"{"_id":3,"agency":"A"}"#
    let result = try seamesh("import", "--partition-by=agency", "R", "-", "--json", input: records)
    let counts = try ExtendedJSON.parseMap(Array(result.output.utf8))
    #expect(counts["imported"] == .int(1) && counts["aside"] == .int(2), "\(result.error)")
    #expect(node.ids == [.int(3)])
  }

  @Test("a record that the node cannot read is reported with its place in the file")
  func placeOfMistakes() throws {
    let result = try seamesh("import", "p", "c", "-", input: "{\"_id\":1}\n\n{\"_id\":2,\n \"a\":NaN}\n")
    #expect(
      result.error == """
        seamesh: standard input, lines 3 to 4, at line 4, column 6 (a): NaN and infinity are not accepted; put aside
        seamesh: 1 record could not be stored

        """)
  }

  @Test("an import goes in batches, from several files and standard input")
  func batches() throws {
    let lines = (0..<1_234).map { "{\"_id\":\($0)}" }.joined(separator: "\n")
    let path = try file("lines.jsonl", lines)
    let result = try seamesh("import", "p", "c", path, "-", input: "{\"_id\":9999}{\"_id\":10000}")
    #expect(result.output == "imported 1236\n")
    #expect(node.ids.count == 1_236)
    let exported = try seamesh("export", "p", "c").output.split(separator: "\n")
    #expect(exported.count == 1_236)
    let array = try seamesh("export", "p", "c", "--array").output
    #expect(try ExtendedJSON.parse(Array(array.utf8)).items.count == 1_236)
    #expect(try seamesh("export", "empty", "--array").output == "[]\n")
    #expect(try seamesh("export", "p").output.hasPrefix(#"{"collection":"c","document":{"_id":0}}"#))
  }

  @Test("an import stops where the node itself is in trouble, and puts nothing aside")
  func trouble() throws {
    node.fail(NodeError(.diskFull, "the disk is full"))
    let result = try seamesh("import", "p", "c", try file("a.json", "{\"_id\":1}"))
    #expect(result.status == 1 && result.error.contains("the disk is full"))
    #expect(
      try !FileManager.default.contentsOfDirectory(atPath: server.directory).contains { $0.hasPrefix("import-aside") })
  }

  @Test("an ended device's status says so and what that means; peers mark it, and devices show roles and what ended it")
  func endedDevices() throws {
    var (end, status, peer, device) = (RightStatus(), try node.status(), PeerStatus(), DeviceStatus())
    (end.issuer, end.manner, end.since, end.sinceBy) = ("office", "retire", 0, "arrival")
    status.endedBy = [end]
    node.show(status: status)
    let line = "membership  ended by office, arrived here 1970-01-01T00:00:00Z (retired): it writes nothing any more"
    #expect(try seamesh("status").output.contains(line))
    (peer.label, peer.state, peer.isEnded) = ("bo", .connected, true)
    node.show(peers: [peer])
    #expect(try seamesh("peers").output.contains("connected: ended, it is no member any more"))
    #expect(try seamesh("peers", "--json").output.contains(#""ended":true"#))
    end.manner = "compromised"
    (device.roles, device.endedBy) = (["admin", "officer"], [end])
    node.show(devices: [device])
    let devices = try seamesh("devices").output
    #expect(devices.contains("admin, officer") && devices.contains("Z (revoked as compromised)"), "\(devices)")
  }

  @Test("status says that what a restore set aside is not checked, also where nothing else would be lost")
  func setAside() throws {
    var status = try node.status()
    (status.lostIfWiped, status.setAside) = (0, ["/d/seamesh.db.before-restore-1"])
    node.show(status: status)
    let unchecked = "would be lost and is not checked: /d/seamesh.db.before-restore-1"
    #expect(try seamesh("status").output.contains("if wiped    nothing of the store would be lost; \(unchecked)\n"))
    status.lostIfWiped = 2
    node.show(status: status)
    #expect(try seamesh("status").output.contains("\(unchecked); see seamesh safe-to-wipe"))
  }

  @Test("the node's state is shown as tables, and as JSON")
  func states() throws {
    #expect(try seamesh("partitions").output.contains("holds nothing yet"))
    #expect(try seamesh("subscribe", "agency=*").output == "wanted: agency=*\n")
    #expect(try node.subscriptions() == ["agency=*"])
    #expect(try seamesh("partitions").output.hasPrefix("PARTITION  WANTED"))
    let json = try ExtendedJSON.parseMap(Array(seamesh("partitions", "--json").output.utf8))
    #expect(json.list("partitions").first?["digest"] == .string("d1"))
    #expect(try !seamesh("partitions").output.contains(" yes  d1"))
    node.show(inboxDigest: "01")
    #expect(try seamesh("partitions").output.contains(" yes        d1\n"))
    #expect(try !seamesh("status").output.contains("conflicts"))
    var status = try node.status()
    for (open, line) in [
      (2, "open in 2 of 5 partitions summed up; see seamesh conflicts"), (0, "none in 5 partitions"),
    ] {
      status.conflicts = ConflictCount(openPartitions: open, partitions: 5)
      node.show(status: status)
      #expect(try seamesh("status").output.contains("conflicts   " + line))
    }
    node.withholdDigests(.failed("the store is damaged"))
    let unknown = try seamesh("partitions").output
    #expect(unknown.contains(" failed\n") && unknown.hasSuffix("agency=*: digest failed: the store is damaged\n"))
    #expect(try seamesh("unsubscribe", "agency=*").status == 0)
    #expect(try node.subscriptions().isEmpty)
    #expect(try seamesh("peers").output.contains("bridge"))
    #expect(try seamesh("devices").output.contains("this device"))
    #expect(try seamesh("status").output.contains("test fleet"))
    let doctor = try seamesh("doctor").output
    #expect(doctor.contains("warning  The clock is off.\n         Set it.\n"))
    #expect(!doctor.contains("\u{1b}"))
  }

  @Test("invitations and backups")
  func maintenance() throws {
    #expect(try seamesh("invite", "--user=ann", "--profile={\"a\":\"1\"}").output.contains("seamesh join CODE-1"))
    #expect(node.lastInvitation?.profile["a"] == .string("1"))
    #expect(node.lastInvitation?.validMilliseconds == 86_400_000)
    #expect(try seamesh("invite").status == 2)
    for (time, milliseconds) in [("90s", 90_000), ("30m", 1_800_000), ("7d", 604_800_000)] as [(String, Int64)] {
      #expect(try seamesh("invite", "--user=ann", "--valid=\(time)").status == 0)
      #expect(node.lastInvitation?.validMilliseconds == milliseconds)
    }
    for time in ["", "0h", "h", "-1h", "1y", "1.5h"] {
      #expect(try seamesh("invite", "--user=ann", "--valid=\(time)").status == 2, "\(time)")
    }
    #expect(try seamesh("invites").output.contains("ann"))
    #expect(try seamesh("invites", "--cancel=1").output == "invitation 1 is cancelled\n")
    #expect(try seamesh("invites", "--cancel=1").status == 3)
    #expect(try seamesh("invites", "--cancel=x").status == 2)
    #expect(try seamesh("invites", "--json").output.contains(#""serial":2"#))
    #expect(try seamesh("backup", "/tmp/x").output == "copied to /tmp/x\n")
  }

  @Test("a backup that fails on the way fails with the node's sentence")
  func failingBackup() throws {
    node.failBackups(NodeError(.diskFull, "there is no room for a backup at /x"))
    let failed = try seamesh("backup", "/x")
    #expect(failed.status == 1 && failed.error == "seamesh: there is no room for a backup at /x\n")
  }

  @Test("an argument that is not UTF-8 is refused, not taken for another one")
  func foreignBytes() throws {
    let line = "\(commandPath) put p c \"$(printf '\\377')\" --data=\(server.directory)"
    let refused = try run("/bin/sh", ["-c", line], input: "{}")
    #expect(refused.status == 2 && refused.error.contains("argument 4 is not UTF-8"), "\(refused.error)")
    #expect(node.ids.isEmpty)
  }

  @Test("output that cannot be written is an error with a sentence")
  func fullOutput() throws {
    let line = "\(commandPath) status --data=\(server.directory) > /dev/full"
    let failed = try run("/bin/sh", ["-c", line])
    #expect(failed.status == 1 && failed.error.contains("No space left on device"), "\(failed.error)")
  }

  @Test("an empty operand is a mistake of usage")
  func emptyOperands() throws {
    for arguments in [["get", "", "c", "x"], ["find", "p", ""], ["subscribe", ""], ["export", ""], ["join", ""]] {
      let refused = try run(commandPath, arguments, environment: ["SEAMESH_DATA": server.directory])
      #expect(refused.status == 2 && refused.error.contains("is empty"), "\(refused.error)")
    }
  }

  @Test("a filter that is too long for a watch is refused with a sentence")
  func longFilter() throws {
    let refused = try seamesh("watch", "p", "c", "--filter={\"a\":\"\(String(repeating: "x", count: 90_000))\"}")
    #expect(refused.status == 1 && refused.error.contains("shorten"), "\(refused.error)")
  }

  @Test("--json with --etag is JSON too")
  func etagJSON() throws {
    #expect(try seamesh("put", "p", "c", "x", input: "{}").status == 0)
    let etag = try seamesh("get", "p", "c", "x", "--etag").output.trimmingCharacters(in: .newlines)
    #expect(try seamesh("get", "p", "c", "x", "--etag", "--json").output == "{\"etag\":\"\(etag)\"}\n")
  }

  @Test("a watch shows each event on a line until the node stops")
  func watching() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: commandPath)
    process.arguments = ["watch", "p", "c", "--json", "--data=\(server.directory)"]
    let output = server.directory + "/watch.out"
    #expect(FileManager.default.createFile(atPath: output, contents: nil))
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = FileHandle.nullDevice
    try process.run()
    func shows(_ text: String) -> Bool {
      (try? String(contentsOfFile: output, encoding: .utf8))?.contains(text) == true
    }
    #expect(waitUntil { shows(#"{"event":"snapshot","cursor":"c0","data":{"documents":[]}}"#) })
    node.watches.first?.push(.delete(id: .int(1), position: 0, cursor: "c1"))
    #expect(waitUntil { shows(#"{"event":"delete","cursor":"c1","data":{"id":1,"position":0}}"#) })
    server.server.stop()
    process.waitUntilExit()
    #expect(process.terminationStatus == 5)
  }

  @Test("a watch whose reader has gone ends quietly, also while nothing happens")
  func abandonedWatch() throws {
    let line = "(timeout 30 \(commandPath) watch p c --data=\(server.directory); echo $? >&2) | head -n 1"
    let ended = try run("/bin/sh", ["-c", line])
    #expect(ended.output == "snapshot 0 documents\n" && ended.errors.last == "1", "\(ended)")
  }

  @Test("a watch that ends since the right to read was taken away ends as one that was never allowed")
  func forbiddenWatch() throws {
    DispatchQueue.global().async { [node] in
      _ = waitUntil { node.watches.count == 1 }
      node.watches.last?.fail(NodeError(.notPermitted, "this device may not read p"))
    }
    let ended = try seamesh("watch", "p", "c")
    #expect(ended.status == 4 && ended.error.contains("this device may not read p"))
  }

  @Test("a watch that the node refuses, or cannot go on with, says why and does not say that the node stopped")
  func refusedWatch() throws {
    node.failWatches(NodeError(.tooLarge, "more than 4 documents"))
    let refused = try seamesh("watch", "p", "c")
    #expect(refused.status == 1 && refused.error.contains("more than 4 documents"))

    node.failWatches(nil)
    DispatchQueue.global().async { [node] in
      _ = waitUntil { node.watches.count == 2 }
      node.watches.last?.fail(NodeError(.tooLarge, "more than 5 documents"))
    }
    let ended = try seamesh("watch", "p", "c")
    #expect(ended.status == 1 && ended.error.contains("more than 5 documents"))
    #expect(!ended.error.contains("stopped") && !ended.output.contains("error"))
  }

  @Test("help, version, completion and manual need no node")
  func alone() throws {
    for arguments in [["help"], ["help", "put"], ["--version"], ["version"], ["completion", "zsh"], ["manual"]] {
      let result = try run(commandPath, arguments, environment: ["SEAMESH_DATA": "/nonexistent"])
      #expect(result.status == 0 && !result.output.isEmpty && result.error.isEmpty)
    }
  }
}
