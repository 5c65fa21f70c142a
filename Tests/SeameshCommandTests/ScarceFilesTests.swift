import Foundation
import Glibc
import Replication
import Seamesh
import TestSupport
import Testing
import Wire

@testable import SeameshCommand

/// Real nodes in want of something, or with a thread that hangs.
@Suite("Nodes in want", .enabled(if: FileManager.default.isExecutableFile(atPath: commandPath)))
struct ScarceFilesTests {
  private let base = NSTemporaryDirectory() + "/seamesh-scarce-" + String(UUID().uuidString.prefix(8))

  private func seamesh(_ arguments: String..., input: String = "") throws -> CommandResult {
    try run(commandPath, arguments + ["--data=\(base)/a"], input: input, environment: ["PATH": "/usr/bin:/bin"])
  }

  /// A node that a shell starts, with what comes before.
  private final class ShellNode {
    let process = Process()
    let log: String
    let ready: ValueMap

    init(_ base: String, _ before: String) throws {
      let (output, log) = (base + "/out", base + "/err")
      for path in [output, log] { try Data().write(to: URL(fileURLWithPath: path)) }
      self.log = log
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      let command = "\(commandPath) run --data=\(base)/a --listen=127.0.0.1:0 --no-discovery --json"
      process.arguments = ["-c", "\(before) exec \(command)"]
      process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
      process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
      try process.run()
      var line: ValueMap?
      _ = waitUntil {
        line = (try? Data(contentsOf: URL(fileURLWithPath: output))).flatMap { try? ExtendedJSON.parseMap(Array($0)) }
        return line != nil
      }
      ready = try #require(line, "no ready line")
    }

    var said: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    var port: UInt16 { ready["listen"]?.items.first?.shownText.split(separator: ":").last.flatMap { UInt16($0) } ?? 0 }

    /// Clock ticks of all threads.
    var processorTicks: Int {
      let line = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)) ?? ""
      let fields = line.split(separator: ")").last?.split(separator: " ") ?? []
      return fields.count > 12 ? (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0) : 0
    }

    deinit { if process.isRunning { process.terminate() } }
  }

  /// Connects from one of many addresses of this machine, since one alone is let in a few times only, and says nothing.
  private func connect(to port: UInt16, from source: UInt32) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    call(bind, descriptor, 0x7f00_0001 + source, 0)
    call(Glibc.connect, descriptor, 0x7f00_0001, port)
    return descriptor
  }

  private func call(
    _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ descriptor: Int32, _ address: UInt32,
    _ port: UInt16
  ) {
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = port.bigEndian
    name.sin_addr.s_addr = address.bigEndian
    _ = withUnsafePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  private func connect(toSocket path: String) -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    _ = withUnsafePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    return descriptor
  }

  @Test(
    "with few files a node under a hundred connections answers its users, says why it has few, and stands still",
    arguments: [64, 56])
  func fewFiles(limit: Int) throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: true)
    #expect(try seamesh("init").status == 0)
    let node = try ShellNode(base, "ulimit -n \(limit);")
    let peers = (0..<100).map { connect(to: node.port, from: UInt32($0 / 5)) }
    // One less than users may have is for this test.
    let users = (1..<DescriptorBudget(limit: limit).users).map { _ in connect(toSocket: base + "/a/api.sock") }
    for round in 0..<10 {
      #expect(try seamesh("put", "p", "c", "\(round)", input: "{\"n\":1}").status == 0)
      #expect(try seamesh("get", "p", "c", "\(round)").status == 0)
    }
    #expect(try seamesh("find", "p", "c").output.split(separator: "\n").count == 10)
    let advice = try seamesh("doctor")
    #expect(advice.output.contains("only \(limit) files open"), "\(advice.output)")
    #expect(!advice.output.contains("found none"), "peers leave enough for all else: \(advice.output)")
    #expect(node.said.components(separatedBy: "few files may be open at once").count == 2, "said once: \(node.said)")
    // Nobody asks anything: of the next second of a spinning thread a hundred ticks would be its own.
    let before = node.processorTicks
    #expect(!waitUntil(within: 1) { node.processorTicks - before >= 50 })
    for descriptor in peers + users { close(descriptor) }
    #expect(try seamesh("status").status == 0)
    node.process.terminate()
    node.process.waitUntilExit()
    #expect(node.process.terminationStatus == 0)
  }

  @Test(
    "a node of which a thread hangs ends with a status of its own, and names the thread",
    arguments: [("hangs", "of the engine"), ("hangs-connections", "of connections")])
  func hangs(build: String, thread: String) throws {
    defer { try? FileManager.default.removeItem(atPath: base) }
    try FileManager.default.createDirectory(atPath: base, withIntermediateDirectories: true)
    #expect(try seamesh("init").status == 0)
    let fleet = try String(contentsOfFile: base + "/a/fleet.id", encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let node = try ShellNode(base, "SEAMESH_TEST_BUILD=\(build):\(fleet)")
    node.process.waitUntilExit()
    #expect(node.process.terminationStatus == 9)
    #expect(node.said.contains("\(thread) has not come back for 2 s"), "\(node.said)")
  }
}
