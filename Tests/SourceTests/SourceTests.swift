import Foundation
import Testing

@Suite("The source keeps its own rules")
struct SourceTests {
  @Test(
    "core, wire, engine and what decides of forwarding import no system, and see neither clock nor chance",
    arguments: [
      ("Sources/Replication", ["Synchronization"]), ("Sources/Wire", ["Replication"]),
      ("Sources/Engine", ["Replication", "Wire"]), ("Sources/Forwarding/Core", ["Replication", "Links"]),
      ("Sources/Links", ["Replication"]),
    ] as [(String, [String])])
  func purity(_ folder: String, _ allowed: [String]) throws {
    let files = try SourceTree.swiftFiles(folder)
    #expect(!files.isEmpty)
    #expect(SourceRule.imports(beyond: allowed).places(in: files) == [])
    #expect(SourceRule.clocks.places(in: files) == [])
    #expect(SourceRule.unseededChance.places(in: files) == [])
  }

  @Test("what ships stands on no Foundation, which costs each process 9 MiB")
  func foundation() throws {
    #expect(SourceRule.foundation.places(in: try SourceTree.swiftFiles("Sources")) == [])
  }

  @Test("sample data and simulation take chance from their seed alone", arguments: ["SampleData", "Simulation"])
  func seeds(_ target: String) throws {
    #expect(SourceRule.unseededChance.places(in: try SourceTree.swiftFiles("Sources/\(target)")) == [])
  }

  @Test("no source ends the process where it should throw")
  func traps() throws {
    let files = try SourceTree.swiftFiles("Sources")
    #expect(SourceRule.traps.places(in: files) == [])
  }

  @Test("no file has marks of unfinished work")
  func markers() throws {
    let files = try SourceTree.textFiles()
    #expect(SourceRule.markers.places(in: files) == [])
  }

  @Test("no file names a path of one machine")
  func machinePaths() throws {
    let rule = SourceRule.machinePaths(
      root: SourceTree.root.path, home: FileManager.default.homeDirectoryForCurrentUser.path)
    let files = try SourceTree.textFiles()
    #expect(rule.places(in: files) == [])
  }

  @Test("what the compiler is asked to believe has its reason beside it")
  func promises() throws {
    let files = try SourceTree.swiftFiles("Sources")
    #expect(SourceRule.unexplainedPromises.places(in: files) == [])
  }
}

/// A rule that finds nothing anywhere would look the same as one that is kept.
@Suite("The rules find what they are for")
struct SourceRuleTests {
  @Test(
    "Foundation, however it is imported",
    arguments: [
      ("import Foundation", [1]), ("import Glibc\nimport FoundationEssentials", [2]),
      ("import FoundationNetworking", [1]),
      ("package import struct Foundation.Data", [1]), ("@preconcurrency import Foundation", [1]),
      ("import _FoundationICU", [1]), ("import CoreFoundation", [1]), ("import `Foundation`", [1]),
      ("import Forwarding // not Foundation", []),
      ("let s = \"import Foundation\"", []),
    ])
  func foundation(_ text: String, _ lines: [Int]) {
    #expect(SourceRule.foundation.lines(text) == lines)
  }

  @Test(
    "imports beyond those allowed",
    arguments: [
      ("import Foundation", [1]), ("import Replication\nimport Glibc", [2]), ("@preconcurrency import Dispatch", [1]),
      ("package import Foundation", [1]), ("// import Foundation\nlet s = \"import Foundation\"", []),
      ("import Replication", []), ("import ReplicationX", [1]), ("  import struct Foundation.Data", [1]),
    ] as [(String, [Int])])
  func imports(_ source: String, _ lines: [Int]) {
    #expect(SourceRule.imports(beyond: ["Replication"]).lines(source) == lines)
  }

  @Test("no import at all")
  func noImports() { #expect(SourceRule.imports(beyond: []).lines("import Swift\nlet a = 1") == [1]) }

  @Test(
    "clocks",
    arguments: [
      ("let now = Date()", [1]), ("\nContinuousClock.now", [2]), ("// Date()", []),
      ("let candidate = Candidate()", []),
    ] as [(String, [Int])])
  func clocks(_ source: String, _ lines: [Int]) {
    #expect(SourceRule.clocks.lines(source) == lines)
  }

  @Test(
    "chance without a seed",
    arguments: [
      ("Int.random(in: 0..<5)", [1]), ("Int.random(in: 0..<5, using: &random)", []), ("Bool.random()", [1]),
      ("items.shuffled(using: &random)", []), ("items.randomElement()", [1]), ("SystemRandomNumberGenerator()", [1]),
    ] as [(String, [Int])])
  func unseededChance(_ source: String, _ lines: [Int]) { #expect(SourceRule.unseededChance.lines(source) == lines) }

  @Test(
    "traps",
    arguments: [
      ("try! f()", [1]), ("x as! Int", [1]), ("fatalError(\"x\")", [1]), ("a!.b", [1]), ("f()!", [1]), ("a[0]!", [1]),
      ("let x: Int!", [1]), ("a != b", []), ("!a && !f()", []), ("a! == b", [1]),
      ("if a, !b { }", []), ("\"wow! \\(a!)\" // a!", []), ("\"\"\"\n a!\n\"\"\"\nb!", [4]), ("#\"\\\"a!\"#; c!", [1]),
      ("/* a! /* b! */ c! */\nd!", [2]), ("a!=b", []),
    ] as [(String, [Int])])
  func traps(_ source: String, _ lines: [Int]) { #expect(SourceRule.traps.lines(source) == lines) }

  @Test("marks of unfinished work, in comments too")
  func markers() {
    for mark in ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"] {
      #expect(SourceRule.markers.lines("let a = 1\n// \(mark): later") == [2])
    }
    #expect(SourceRule.markers.lines("a XXXX template") == [])
  }

  @Test(
    "promises without a reason",
    arguments: [
      ("final class A: @unchecked Sendable {}", [1]),
      ("// Guarded by `lock`.\nfinal class A: @unchecked Sendable {}", []),
      ("final class A: @unchecked Sendable {}  // guarded by `lock`", []),
      ("// Why.\n\nnonisolated(unsafe) var a = 1", [3]), ("// The words @unchecked Sendable alone", []),
    ] as [(String, [Int])])
  func promises(_ source: String, _ lines: [Int]) { #expect(SourceRule.unexplainedPromises.lines(source) == lines) }

  @Test("paths of one machine")
  func machinePaths() {
    let rule = SourceRule.machinePaths(root: "/data/ada/seamesh", home: "/root")
    #expect(rule.lines("cd /data/ada/seamesh/Sources") == [1])
    #expect(rule.lines("x\n\"/data/ada/other/file\"") == [2])
    #expect(rule.lines("/root" + "/.config") == [1])
    #expect(rule.lines("path=/home" + "/ada/x") == [1])
    #expect(rule.lines("/tmp/seamesh and /usr/bin and $HOME/x and Tests/root/x") == [])
    #expect(SourceRule.machinePaths(root: "/tmp/seamesh", home: "/root").lines("/tmp/other/x") == [])
  }
}
