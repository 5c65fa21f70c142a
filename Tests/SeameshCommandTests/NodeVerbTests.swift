import Foundation
import LocalAPITestSupport
import Replication
import Seamesh
import TestSupport
import Testing
import Wire

@testable import SeameshCommand

/// What a fake node cannot show: the rules of documents, as the command meets them on a node as it is shipped.
@Suite("The verbs of documents against a whole node", .enabled(if: isCommandBuilt), .serialized)
struct NodeVerbTests {
  let whole: WholeNode

  init() throws { whole = try WholeNode() }

  private func seamesh(_ arguments: String..., input: String = "") throws -> CommandResult {
    try whole.server.run(arguments, input: input)
  }

  private func shown(_ id: String) throws -> String {
    try seamesh("get", "p", "c", id).output.trimmingCharacters(in: .newlines)
  }

  private func etag(_ id: String) throws -> String {
    try seamesh("get", "p", "c", id, "--etag").output.trimmingCharacters(in: .newlines)
  }

  @Test("put replaces what is there, keeps it with --keep-absent, and says what it did")
  func putting() throws {
    #expect(
      try seamesh("put", "p", "c", "r", input: #"{"a":1,"b":{"x":1,"y":2}}"#).output.hasPrefix("created r (local-"))
    let kept = try seamesh("put", "p", "c", "r", "--keep-absent", input: #"{"b":{"x":3}}"#)
    #expect(kept.output.hasPrefix("changed r (local-durable, etag "))
    #expect(try shown("r") == #"{"_id":"r","a":1,"b":{"x":3,"y":2}}"#)
    #expect(try seamesh("put", "p", "c", "r", input: #"{"b":{"x":3}}"#).output.hasPrefix("changed r "))
    #expect(try shown("r") == #"{"_id":"r","b":{"x":3}}"#)
    let before = try whole.changes()
    let same = try seamesh("put", "p", "c", "r", "--json", input: #"{"_id":"r","b":{"x":3}}"#)
    #expect(try ExtendedJSON.parseMap(Array(same.output.utf8))["dot"] == .null)
    #expect(try seamesh("put", "p", "c", "r", input: #"{"b":{"x":3}}"#).output.hasPrefix("unchanged r "))
    #expect(try whole.changes() == before)
  }

  @Test("--if-match lets a write through on the version that it names alone; a document that never was has none")
  func ifMatch() throws {
    #expect(try seamesh("put", "p", "c", "r", input: #"{"n":1}"#).status == 0)
    let first = try etag("r")
    #expect(try seamesh("put", "p", "c", "r", "--if-match=\(first)", input: #"{"n":2}"#).status == 0)
    let before = try whole.changes()
    let stale = try seamesh("put", "p", "c", "r", "--if-match=\(first)", input: #"{"n":3}"#)
    #expect(stale.isRefusal && stale.status == 1 && stale.error.contains("has changed"), "\(stale.error)")
    for verb in [["patch", "p", "c", "r", #"{"n":4}"#], ["delete", "p", "c", "r"]] {
      #expect(try whole.server.run(verb + ["--if-match=\(first)"]).status == 1)
    }
    for id in ["never", "*"] {
      for tag in [first, "*"] {
        let none = try seamesh("put", "p", "c", id, "--if-match=\(tag)", input: "{}")
        #expect(none.isRefusal && none.error.contains("no such document"), "\(none.error)")
      }
    }
    #expect(try seamesh("get", "p", "c", "never").status == 3)
    #expect(try whole.changes() == before)
    #expect(try seamesh("patch", "p", "c", "r", #"{"n":5}"#, "--if-match=*").status == 0)
    #expect(try seamesh("delete", "p", "c", "r", "--if-match=\(try etag("r"))").status == 0)
    let gone = try seamesh("put", "p", "c", "r", "--if-match=*", input: "{}")
    #expect(gone.isRefusal && gone.error.contains("was deleted"), "\(gone.error)")
  }

  @Test("--new makes a document once, and once more after it was deleted")
  func new() throws {
    #expect(try seamesh("put", "p", "c", "r", "--new", input: "{}").status == 0)
    let second = try seamesh("put", "p", "c", "r", "--new", input: #"{"n":1}"#)
    #expect(second.isRefusal && second.status == 1 && second.error.contains("there already"))
    #expect(try seamesh("put", "p", "c", "r", "--new", "--if-match=*", input: "{}").status == 1)
    #expect(try seamesh("delete", "p", "c", "r").status == 0)
    #expect(try seamesh("put", "p", "c", "r", "--new", input: #"{"n":2}"#).output.hasPrefix("created r"))
  }

  @Test("a patch of a document that is not there ends with 3 and writes nothing; --upsert makes it")
  func patchOfNothing() throws {
    #expect(try seamesh("put", "p", "c", "gone", input: "{}").status == 0)
    #expect(try seamesh("delete", "p", "c", "gone").output == "deleted gone\n")
    let before = try whole.changes()
    for id in ["never", "gone"] {
      for patch in [[#"{"n":1}"#], [#"{"$set":{"n":1}}"#], ["--set=n=1"], ["--unset=n"]] {
        let refused = try whole.server.run(["patch", "p", "c", id] + patch)
        #expect(refused.isRefusal && refused.status == 3 && refused.error.contains("no such document"))
      }
    }
    #expect(try whole.changes() == before)
    #expect(try seamesh("patch", "p", "c", "never", "--set=n=1", "--upsert").output.hasPrefix("created never"))
    #expect(try seamesh("patch", "p", "c", "gone", #"{"$set":{"n.m":1}}"#, "--upsert").output.hasPrefix("created gone"))
    #expect(try shown("never") == #"{"_id":"never","n":1}"# && shown("gone") == #"{"_id":"gone","n":{"m":1}}"#)
    #expect(try seamesh("patch", "p", "c", "never", "--set=m=2", "--upsert").output.hasPrefix("changed never"))
  }

  @Test("an operator that is not built is named, also of a document that is not there")
  func unbuiltOperators() throws {
    for id in ["never", "never"] {
      let refused = try seamesh("patch", "p", "c", id, #"{"$inc":{"n":1}}"#)
      #expect(refused.isRefusal && refused.status == 2 && refused.error.contains("$inc"), "\(refused.error)")
    }
    let text = try seamesh("find", "p", "c", #"--filter={"n":{"$near":1}}"#)
    #expect(text.isRefusal && text.status == 2 && text.error.contains("$near"), "\(text.error)")
  }

  @Test("what the node cannot make sense of in a filter, a sort order or an id is a mistake of usage")
  func typed() throws {
    for option in [
      "--filter=[1]", "--filter={", #"--filter={"$or":[]}"#, #"--filter={"n":{"$near":1}}"#,
      #"--sort={"a":2}"#, "--sort=1",
      #"--projection={"a":1,"b":0}"#,
    ] {
      for verb in ["find", "watch"] {
        let refused = try seamesh(verb, "p", "c", option)
        #expect(refused.isRefusal && refused.status == 2, "\(verb) \(option): \(refused)")
      }
    }
    for verb in ["get", "delete"] {
      for id in [#"{"$oid":"xx"}"#, "{", "\"a"] {
        let refused = try seamesh(verb, "p", "c", id)
        #expect(refused.isRefusal && refused.status == 2, "\(verb) \(id): \(refused)")
      }
    }
  }

  private func isMistake(_ words: [String], _ says: String) throws {
    let refused = try whole.server.run(words, input: "{}")
    #expect(refused.isRefusal && refused.status == 2 && refused.error.contains(says), "\(words): \(refused)")
  }

  private let long = String(repeating: "x", count: 1_100)

  @Test("an id that none can be is a mistake of usage with every verb that takes one, and one of 1,021 bytes is none")
  func idsThatNoneCanBe() throws {
    for id in ["{}", #"{"a":1}"#, #"{"$numberDouble":"1.5"}"#] {
      try isMistake(["put", "p", "c", "--id=\(id)", "--file=-"], "an id is a string")
      for verb in ["get", "delete", "receipts"] { try isMistake([verb, "p", "c", id], "an id is a string") }
      try isMistake(["patch", "p", "c", id, "--set=a=1"], "an id is a string")
    }
    for verb in ["put", "get", "delete", "receipts"] { try isMistake([verb, "p", "c", long], "1021 bytes") }
    #expect(try seamesh("put", "p", "c", "--id=" + String(repeating: "x", count: 1_021), input: "{}").status == 0)
    // What stands in the document is no argument.
    #expect(try seamesh("put", "p", "c", "-", input: #"{"_id":{"a":1}}"#).status == 1)
  }

  @Test("a pattern, or what no partition or collection can be called, is a mistake of usage where one is meant")
  func namesOfOne() throws {
    let places: [[String]] = [
      ["put", "?", "c", "r", "-"], ["get", "?", "c", "r"], ["delete", "?", "c", "r"], ["find", "?", "c"],
      ["patch", "?", "c", "r", "--set=a=1"], ["watch", "?", "c"], ["export", "?"], ["import", "?", "c", "-"],
      ["import", "--by-collection", "?", "-"], ["receipts", "?"], ["conflicts", "?"], ["permissions", "?"],
      ["resolve", "?", "63.0661.v1.1", "--keep"],
    ]
    for place in places {
      func at(_ name: String) -> [String] { place.map { $0 == "?" ? name : $0 } }
      try isMistake(at("agency=*"), "agency=* is the beginning of names, and one partition is meant here")
      for name in ["a\tb", long] { try isMistake(at(name), "a partition's name has 1 to 255 bytes") }
    }
    for verb in [["put", "p", "?", "r"], ["find", "p", "?"], ["export", "p", "?"], ["import", "p", "?", "-"]] {
      try isMistake(verb.map { $0 == "?" ? long : $0 }, "a collection's name has at most 255 bytes")
    }
    for verb in ["subscribe", "unsubscribe"] { try isMistake([verb, "a\tb"], "PARTITION is a name, or the beginning") }
  }

  @Test("a patch that no document can take is a mistake of usage")
  func patchesThatNoneTakes() throws {
    #expect(try seamesh("put", "p", "c", "r", input: "{}").status == 0)
    for (patch, says) in [
      (#"{"$inc":{"n":1}}"#, "$inc is not built yet"), (#"{"$set":1}"#, "needs an object"),
      (#"{"$set":{"a":1,"a.b":2}}"#, "collide"), (#"{"_id":"x"}"#, "_id never changes"),
      ("--set=_id=1", "_id never changes"),
    ] { try isMistake(["patch", "p", "c", "r", patch], says) }
    #expect(try seamesh("patch", "p", "c", "r", #"{"_id":"r","a":1}"#).status == 0)
    // What the document has no place for is the store's matter.
    #expect(try seamesh("patch", "p", "c", "r", "--set=a.b=1").status == 1)
  }

  @Test("a value that a conflict does not have is a mistake of usage, and the sentence says how many there are")
  func takenInVain() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    node.fail(NodeError(.unprocessable, "this conflict has 1 value, and no value 9"))
    let refused = try server.run(["resolve", "p", "63.0661.v1.1", "--take=9"])
    #expect(refused.isRefusal && refused.status == 2 && refused.error.contains("has 1 value, and no value 9"))
  }

  @Test("an invitation or a time that none can be is a mistake of usage, and no node is asked")
  func invitationsThatNoneCanBe() throws {
    for (options, says): ([String], String) in [
      (["--user="], "a user has 1 to 255 bytes"), (["--user=\(long)"], "a user has"),
      (["--user=b", "--role=\(long)"], "a role has"), (["--user=b", "--profile={\"a\":1}"], "a profile has"),
      (["--user=b", "--valid=9999d"], "1 second to 366 days"),
    ] { try isMistake(["invite"] + options, says) }
    #expect(try whole.node.invitations().isEmpty)
    try isMistake(["revoke", "bridge", "--at=2999-01-01T00:00:00Z", "--yes"], "lies in the future")
  }

  @Test("put, patch and import say in their help how large a document may be")
  func limitsInHelp() throws {
    for verb in ["put", "patch", "import"] {
      let help = try seamesh("help", verb).output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      for limit in ["1 MiB as it is stored", "8 MiB as JSON", "64 levels", "10000 values", "1021"] {
        #expect(help.contains(limit), "\(verb): \(limit)")
      }
    }
  }

  @Test("receipts of a partition say why a device that was ended may not have them")
  func receiptsOfTheEnded() throws {
    #expect(try seamesh("put", "p", "c", "r", input: "{}").status == 0)
    #expect(try seamesh("retire", "bridge", "--yes").status == 0)
    for place in [["p"], ["p", "c", "r"]] {
      let refused = try whole.server.run(["receipts"] + place)
      #expect(
        refused.status == 4 && refused.error.contains("its membership was ended by the end of bridge"), "\(refused)")
    }
  }

  @Test("that the last admin ends is told before it is signed, also where nobody is asked")
  func lastAdmin() throws {
    let refused = try seamesh("retire", "bridge")
    #expect(refused.status == 1 && refused.output.contains("this ends the fleet's last admin"), "\(refused)")
    #expect(try whole.node.devices().allSatisfy { $0.endedBy.isEmpty })
    let signed = try seamesh("retire", "bridge", "--yes")
    #expect(signed.status == 0 && signed.output.hasPrefix("signed the end of bridge\n"), "\(signed)")
    #expect(
      signed.error.contains("this ends the fleet's last admin") && !signed.output.contains("last admin"), "\(signed)")
  }

  @Test("delete ends with 3 where nothing is there, and get of another collection or partition, too")
  func absence() throws {
    #expect(try seamesh("put", "p", "c", "r", input: "{}").status == 0)
    for place in [["p", "d", "r"], ["q", "c", "r"], ["p", "c", "s"]] {
      #expect(try whole.server.run(["get"] + place).status == 3)
    }
    #expect(try seamesh("delete", "p", "c", "r").status == 0)
    let again = try seamesh("delete", "p", "c", "r")
    #expect(again.isRefusal && again.status == 3)
    #expect(try seamesh("find", "p", "c").output.isEmpty && seamesh("find", "q", "c").status == 0)
  }

  @Test("find filters, sorts, skips, limits and projects, and shows no _id where it is told so")
  func finding() throws {
    let lines = (0..<20).map { #"{"_id":\#($0),"n":\#($0 % 5),"v":{"name":"v\#($0)"}}"# }.joined(separator: "\n")
    #expect(try seamesh("import", "p", "c", "-", input: lines).output == "imported 20\n")
    func ids(_ options: String...) throws -> [Value] {
      try whole.server.run(["find", "p", "c"] + options).lines.map { line in
        try ExtendedJSON.parseMap(Array(line.utf8))["_id"] ?? .null
      }
    }
    #expect(try ids("--filter={\"n\":4}") == [4, 9, 14, 19].map { .int($0) })
    #expect(
      try ids("--filter={\"n\":{\"$gte\":3}}", "--sort={\"n\":-1,\"_id\":-1}", "--limit=3")
        == [19, 14, 9].map { .int($0) })
    #expect(try ids("--skip=17") == [17, 18, 19].map { .int($0) })
    #expect(try ids("--filter={\"v.name\":{\"$in\":[\"v3\",\"v5\"]}}") == [3, 5].map { .int($0) })
    let projected = try seamesh("find", "p", "c", "--filter={\"_id\":3}", #"--projection={"v.name":1,"_id":0}"#)
    #expect(projected.output == #"{"v":{"name":"v3"}}"# + "\n")
    let plain = try seamesh("find", "p", "c", "--filter={\"_id\":3}", #"--projection={"v":0}"#)
    #expect(plain.output == #"{"_id":3,"n":3}"# + "\n")
  }

  @Test("an import replaces documents by their _id, a second one changes nothing, and an export gives all of it back")
  func importing() throws {
    let lines = (0..<600).map { #"{"_id":"\#(1000 + $0)","n":\#($0)}"# }
    let file = try whole.server.file("r.jsonl", lines.joined(separator: "\n"))
    #expect(try seamesh("import", "p", "c", file).output == "imported 600\n")
    let before = try whole.changes()
    #expect(try seamesh("import", "p", "c", file).output == "imported 600, of them 600 without a change\n")
    #expect(try whole.changes() == before)
    #expect(try seamesh("export", "p", "c").lines == lines)
    #expect(try seamesh("import", "p", "c", "-", "--keep-absent", input: #"{"_id":"1000","m":1}"#).status == 0)
    #expect(try shown("1000") == #"{"_id":"1000","m":1,"n":0}"#)
    #expect(try seamesh("import", "p", "c", "-", input: #"{"_id":"1000","m":2}"#).status == 0)
    #expect(try shown("1000") == #"{"_id":"1000","m":2}"#)
  }

  @Test("what a node cannot hold is refused with its limit, and stored nowhere")
  func limits() throws {
    let large = try seamesh("put", "p", "c", "r", input: #"{"t":"\#(String(repeating: "x", count: 1_100_000))"}"#)
    #expect(large.isRefusal && large.error.contains("1048576"), "\(large.error)")
    let deep = String(repeating: #"{"a":"#, count: 70) + "1" + String(repeating: "}", count: 70)
    #expect(try seamesh("put", "p", "c", "r", input: deep).error.contains("64"))
    for place in [["p*", "c", "r"], ["p", String(repeating: "c", count: 300), "r"], ["p", "c\n", "r"]] {
      let refused = try whole.server.run(["put"] + place, input: "{}")
      #expect(refused.isRefusal && refused.status == 2, "\(refused.error)")
    }
    #expect(try seamesh("export", "p").output.isEmpty)
  }

  @Test("a watch shows what another command does, and a client that comes back with its cursor is not told it again")
  func watching() throws {
    #expect(try seamesh("put", "p", "c", "a", input: #"{"n":1}"#).status == 0)
    let watch = try Watching(whole.server, ["watch", "p", "c", #"--filter={"n":{"$gt":0}}"#])
    defer { watch.stop() }
    #expect(watch.shows("snapshot 1 document") && watch.shows(#"  {"_id":"a","n":1}"#))
    #expect(try seamesh("put", "p", "c", "b", input: #"{"n":2}"#).status == 0)
    #expect(watch.shows(#"insert {"document":{"_id":"b","n":2},"position":1}"#))
    #expect(try seamesh("patch", "p", "c", "b", #"{"m":3}"#).status == 0)
    #expect(watch.shows(#"update {"document":{"_id":"b","m":3,"n":2},"position":1,"previousPosition":1}"#))
    #expect(try seamesh("patch", "p", "c", "b", #"{"n":0}"#).status == 0)
    #expect(watch.shows(#"delete {"id":"b","position":1}"#))
    #expect(try resumed(nil)?.name == "snapshot")
    let cursor = try #require(try resumed(nil)?.id)
    #expect(try resumed(cursor) == nil)
    #expect(try seamesh("put", "p", "c", "a", input: #"{"n":7}"#).status == 0)
    #expect(try resumed(cursor)?.name == "snapshot")
  }

  /// The first event for a client that comes with a cursor; nil where it is told that nothing has changed.
  private func resumed(_ cursor: String?) throws -> EventStream.Event? {
    var (events, first, text): (EventStream, EventStream.Event?, String) = (EventStream(), nil, "")
    let target = NodePath.collection("p", "c") + "/watch"
    try NodeClient(directory: whole.server.directory).stream(
      .init(target: target, headers: cursor.map { ["Last-Event-ID: \($0)"] } ?? [])
    ) { bytes in
      text += String(decoding: bytes, as: UTF8.self)
      first = events.append(bytes).first ?? first
      return first == nil && !text.contains("nothing has changed")
    }
    return first
  }

  @Test("figures of the node come as tables and as JSON with all their members")
  func figures() throws {
    #expect(try seamesh("put", "agency=W", "c", "r", input: "{}").status == 0)
    func members(_ verb: String, _ list: Text? = nil) throws -> Set<String> {
      let map = try ExtendedJSON.parseMap(Array(seamesh(verb, "--json").output.utf8))
      return Set((list.map { map.list($0).first ?? ValueMap() } ?? map).entries.map(\.key.string))
    }
    #expect(try members("status").isSuperset(of: ["device", "fleet", "documents", "changes", "logBytes", "listen"]))
    #expect(try members("partitions", "partitions").isSuperset(of: ["name", "subscribed", "vector", "digest"]))
    #expect(try members("devices", "devices").isSuperset(of: ["device", "user", "label", "role", "isSelf"]))
    #expect(try members("doctor", "findings").isSuperset(of: ["level", "code", "message", "remedy"]))
    #expect(try members("peers").isSuperset(of: ["peers"]))
    let status = try seamesh("status").output
    #expect(status.contains("patrol (") && status.contains("ann@test.example") && status.contains("documents"))
    let partitions = try seamesh("partitions").lines
    #expect(partitions.count == 2 && partitions[1].hasPrefix("agency=W   yes"), "\(partitions)")
    #expect(try seamesh("peers").output.contains("no other node has been seen"))
  }

  @Test("subscriptions are taken, ended, and refused where they are none")
  func subscriptions() throws {
    #expect(try seamesh("subscribe", "agency=*").output == "wanted: agency=*\n")
    #expect(try seamesh("subscribe", "agency=*", "--json").output.contains("\"subscribed\":true"))
    #expect(try seamesh("unsubscribe", "agency=*").output == "no longer wanted: agency=*\n")
    let absent = try seamesh("unsubscribe", "agency=*")
    #expect(absent.isRefusal && absent.status == 3)
    #expect(try seamesh("subscribe", "a\nb").isRefusal)
  }

  @Test("a backup is whole, is not written over another file, and goes back in with restore")
  func backups() throws {
    #expect(try seamesh("put", "p", "c", "r", input: #"{"n":1}"#).status == 0)
    let copy = whole.directory + ".backup"
    defer { try? FileManager.default.removeItem(atPath: copy) }
    #expect(try seamesh("backup", copy).output == "copied to \(copy)\n")
    #expect(try seamesh("backup", copy).isRefusal)
    let other = try seamesh("backup", "/nonexistent/copy")
    #expect(other.isRefusal && other.error.contains("/nonexistent/copy"), "\(other.error)")
    #expect(try seamesh("put", "p", "c", "r", input: #"{"n":2}"#).status == 0)
    let running = try run(commandPath, ["restore", copy, "--data=\(whole.directory)"])
    #expect(running.isRefusal && running.status == 1 && running.error.contains("stop it first"), "\(running.error)")
    whole.node.stop()
    let missing = try run(commandPath, ["restore", copy + "x", "--data=\(whole.directory)"])
    #expect(missing.isRefusal && missing.status == 3, "\(missing.error)")
    let restored = try run(commandPath, ["restore", copy, "--data=\(whole.directory)", "--json"])
    let answer = try ExtendedJSON.parseMap(Array(restored.output.utf8))
    #expect(answer.text("restored") == copy && FileManager.default.fileExists(atPath: answer.text("previous")))
    let nowhere = try run(commandPath, ["restore", copy, "--data=\(whole.directory)x"])
    #expect(nowhere.isRefusal && nowhere.status == 3, "\(nowhere.error)")
  }
}

/// A command that goes on until it is stopped, with what it has shown.
final class Watching {
  let process = Process()
  private let output: String

  init(_ server: TestedServer, _ arguments: [String]) throws {
    output = server.directory + "/watch-\(UUID().uuidString.prefix(8)).out"
    try Data().write(to: URL(fileURLWithPath: output))
    process.executableURL = URL(fileURLWithPath: commandPath)
    process.arguments = arguments + ["--data=\(server.directory)"]
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  /// Waits for a line.
  func shows(_ line: String) -> Bool {
    waitUntil {
      (try? String(contentsOfFile: output, encoding: .utf8))?.split(separator: "\n").contains(Substring(line)) == true
    }
  }

  /// What a test starts has the signals blocked that the test's own thread has: only this one always arrives.
  func stop() {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}
