import Foundation
import LocalAPITestSupport
import Replication
import Testing

@testable import SeameshCommand

@Suite("Which operand is the id, which the file")
struct OperandTests {
  private let directory = NSTemporaryDirectory() + "seamesh-operands-" + String(UUID().uuidString.prefix(8))

  private func operands(_ words: String..., id: String? = nil, file: String? = nil) throws(Failure) -> [String?] {
    var options: [String: [String]] = [:]
    options["id"] = id.map { [$0] }
    options["file"] = file.map { [$0] }
    let found = try putOperands(Invocation(verb: "put", operands: ["p", "c"] + words, options: options)) { true }
    return [found.id, found.file]
  }

  private func message(_ body: () throws(Failure) -> [String?]) -> String {
    do throws(Failure) {
      return "\(try body())"
    } catch {
      return error.status == .usage ? error.message : "not of usage"
    }
  }

  @Test("two operands are ID and FILE, one is FILE where it is - or names a file, else ID")
  func guessing() throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = directory + "/r1"
    try "{}".write(toFile: file, atomically: false, encoding: .utf8)
    #expect(try operands() == [nil, "-"])
    #expect(try operands("r1", "f.json") == ["r1", "f.json"])
    #expect(try operands("r1", "-") == ["r1", "-"])
    #expect(try operands("-") == [nil, "-"])
    #expect(try operands("r1") == ["r1", "-"])
    #expect(try operands(file) == [nil, file])
    #expect(try operands(directory) == [directory, "-"])
  }

  @Test("--id and --file say which is meant, and the one operand left is the other")
  func naming() throws {
    #expect(try operands(id: "r1") == ["r1", "-"])
    #expect(try operands("f.json", id: "r1") == ["r1", "f.json"])
    #expect(try operands(file: "f.json") == [nil, "f.json"])
    #expect(try operands("r1", file: "f.json") == ["r1", "f.json"])
    #expect(try operands(id: "r1", file: "f.json") == ["r1", "f.json"])
    #expect(try operands(id: "report.json") == ["report.json", "-"])
  }

  @Test("what is too much, empty, or looks like a file that is not there is a mistake of usage")
  func refusals() {
    #expect(message { () throws(Failure) in try operands("a", "b", id: "c") }.contains("b is one argument too many"))
    #expect(message { () throws(Failure) in try operands("a", "b", file: "c") }.contains("b is one argument too many"))
    #expect(message { () throws(Failure) in try operands("a", id: "b", file: "c") }.contains("a is one argument"))
    #expect(message { () throws(Failure) in try operands(id: "") }.contains("not empty"))
    #expect(message { () throws(Failure) in try operands("a", file: "") }.contains("not empty"))
    let mistyped = message { () throws(Failure) in try operands("reprot.json") }
    #expect(mistyped.contains("there is no file reprot.json") && mistyped.contains("--id=reprot.json"))
  }

  @Test(
    "a mistyped file is refused before standard input is read, and --id makes a document of that name",
    .enabled(if: isCommandBuilt))
  func mistypedFile() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    let refused = try server.run(["put", "p", "c", "reprot.json"], input: #"{"secret":1}"#)
    #expect(refused.isRefusal && refused.status == 2 && node.ids.isEmpty)
    #expect(try server.run(["put", "p", "c", "--id=reprot.json"], input: "{}").status == 0)
    let file = try server.file("r1", #"{"n":1}"#)
    #expect(try server.run(["put", "p", "c", "--id", file], input: "{}").status == 0)
    #expect(try server.run(["put", "p", "c", "x", "--file", file]).status == 0)
    let absent = try server.run(["put", "p", "c", "y", "--file=/nonexistent"], input: "{}")
    #expect(absent.isRefusal && absent.status == 3)
    #expect(Set(node.ids) == [.string("reprot.json"), .string(Text(file)), .string("x")])
    #expect(try server.run(["get", "p", "c", "x"]).output == "{\"_id\":\"x\",\"n\":1}\n")
  }

  @Test(
    "a plain name that is a file is not guessed to be it where a document is given on standard input as well",
    .enabled(if: isCommandBuilt))
  func ambiguous() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    _ = try server.file("r1", #"{"_id":"in the file"}"#)
    _ = try server.file("r2.json", #"{"_id":"redirected"}"#)
    _ = try server.file("r3.json", "{}")
    let put = "cd \(server.directory) && \(commandPath) put p c"
    for line in ["echo '{}' | \(commandPath) put p c r1", "\(commandPath) put p c r1 < r2.json"] {
      let refused = try run("/bin/sh", ["-c", "cd \(server.directory) && export SEAMESH_DATA=. && \(line)"])
      #expect(refused.isRefusal && refused.status == 2, "\(refused)")
      #expect(refused.error.contains("--file=r1") && refused.error.contains("--id=r1"), "\(refused.error)")
    }
    #expect(node.ids.isEmpty)
    for arguments in ["r1 < /dev/null", "r2.json < r1", "--id=r1 < r3.json"] {
      let stored = try run("/bin/sh", ["-c", "\(put) --data=. \(arguments)"])
      #expect(stored.status == 0, "\(arguments): \(stored.error)")
    }
    #expect(Set(node.ids) == [.string("in the file"), .string("redirected"), .string("r1")])
  }

  @Test("what is meant for a document that is there needs its id", .enabled(if: isCommandBuilt))
  func optionsWithoutID() throws {
    let node = FakeNode()
    let server = try TestedServer(node)
    for option in ["--if-match=x", "--keep-absent"] {
      let refused = try server.run(["put", "p", "c", option], input: "{}")
      #expect(refused.isRefusal && refused.status == 2 && refused.error.contains(option.split(separator: "=")[0]))
    }
    #expect(node.ids.isEmpty)
    #expect(try server.run(["put", "p", "c", "--keep-absent"], input: #"{"_id":"a"}"#).status == 0)
    #expect(try server.run(["put", "p", "c", "--new"], input: "{}").status == 0)
    let bad = try server.run(["put", "p", "c", "-"], input: "{")
    #expect(bad.isRefusal && bad.status == 1 && bad.error.contains("standard input is not a document. Line 1"))
  }
}
