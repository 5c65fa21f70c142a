import Foundation
import Glibc
import Replication
import Testing
import Wire

@testable import SeameshCommand

@Suite("Figures and how they are taken")
struct BenchUnitTests {
  @Test(
    "a value has three significant digits below 1,000 and whole thousands above",
    arguments: [
      (0, "0"), (0.12345, "0.123"), (1.2345, "1.23"), (12.345, "12.3"), (123.45, "123"), (999.96, "1,000"),
      (1_000, "1,000"), (1_234_567.8, "1,234,568"), (-1_234, "-1,234"), (.infinity, "-"), (.nan, "-"),
    ] as [(Double, String)])
  func values(value: Double, text: String) {
    #expect(Figure.text(value) == text)
  }

  @Test("a bar holds on its bound, and the line says which it is")
  func bars() {
    let (least, most) = (Figure.Floor.atLeast(2), Figure.Floor.atMost(2))
    #expect(least.holds(2) && !least.holds(1.9) && most.holds(2) && !most.holds(2.1))
    let figure = Figure("k", "name", 3, "ms", basis: "of ten", floor: most)
    #expect(figure.line.hasSuffix("       3 ms  [<= 2: FALLS SHORT]  (of ten)") && figure.holds == false)
    #expect(Figure("k", "name", 3, "").holds == nil)
    #expect(Figure("k", String(repeating: "n", count: 60), 3, "").line.contains("n        3"))
    let map = figure.map
    #expect(map["atMost"] == .double(2) && map["atLeast"] == nil && map["holds"] == .bool(false))
    #expect(Figure("k", "n", .nan, "").map["value"] == .double(0))
  }

  @Test("a percentile is the smallest value that so many of a hundred do not exceed")
  func percentiles() {
    let samples = Samples((1...100).shuffled().map(Double.init))
    #expect(samples.median == 50 && samples.percentile(99) == 99 && samples.percentile(100) == 100)
    #expect(samples.percentile(0) == 1 && samples.best == 100 && samples.count == 100)
    let one = Samples([7])
    #expect(one.median == 7 && one.percentile(1) == 7 && one.percentile(99) == 7)
    #expect(Samples([1, 2, 3]).median == 2 && Samples([1, 2]).percentile(51) == 2)
    #expect(Duration.milliseconds(1_500).asSeconds == 1.5 && Duration.microseconds(1_500).asMilliseconds == 1.5)
  }

  @Test("a report shows machine and figures as they come, and is JSON with all of them")
  func report() throws {
    var lines: [String] = []
    let report = BenchReport(machine: Machine(measuring: "/")) { lines.append($0) }
    let names = ["processor", "memory", "disk", "system", "load before", "seamesh", "libraries"]
    #expect(
      lines.prefix(7).map { line in names.contains { line.hasPrefix($0 + " ") } } == Array(repeating: true, count: 7))
    report.add(Figure("a", "first", 1, "ms"))
    #expect(lines.last?.hasPrefix("first ") == true && report.allHold)
    report.add(Figure("b", "second", 1, "ms", floor: .atLeast(2)))
    #expect(!report.allHold)
    report.finish(isQuick: true)
    #expect(lines.last?.hasSuffix("; small sizes, so no figure is to be quoted") == true)
    let map = try ExtendedJSON.parseMap(Array(report.json.utf8))
    #expect(map.list("figures").map { $0.text("key") } == ["a", "b"] && map["allHold"] == .bool(false))
    #expect(names.allSatisfy { map["machine"]?.map?[Text($0)] != nil })
    var bare: [String] = []
    BenchReport(machine: Machine(measuring: "/nonexistent")) { bare.append($0) }.finish(isQuick: false)
    #expect(bare.last?.hasSuffix("none of them held against a bar") == true)
    #expect(bare.contains { $0.hasPrefix("disk") && $0.hasSuffix("unknown") })
  }

  @Test("files in which the kernel tells about itself are read as fields, the first of each name")
  func systemFiles() throws {
    let path = NSTemporaryDirectory() + "/fields-" + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    try "a: 1\nb :\t2 \nno field\na: 3\nc:d:e\n".write(toFile: path, atomically: false, encoding: .utf8)
    #expect(SystemFile.fields(path) == ["a": "1", "b": "2", "c": "d:e"])
    #expect(SystemFile.text(path + "x").isEmpty && SystemFile.fields(path + "x").isEmpty)
    #expect(SystemFile.fields("/proc/self/status")["Name"] != nil)
  }

  @Test("a scratch directory is its own, private, and goes with everything in it")
  func scratch() throws {
    let parent = NSTemporaryDirectory()
    let scratch = try BenchScratch(in: parent)
    let inner = try scratch.directory("node")
    let mode = try FileManager.default.attributesOfItem(atPath: inner)[.posixPermissions] as? Int
    #expect(inner.hasPrefix(parent + "/seamesh-bench.") && mode == 0o700)
    #expect(throws: Failure.self) { try scratch.directory("node") }
    scratch.remove()
    #expect(!FileManager.default.fileExists(atPath: scratch.path))
    #expect(throws: Failure.self) { try BenchScratch(in: "/nonexistent") }
  }

  // MARK: The relay

  /// Answers each connection's bytes with as many, until it is closed.
  private final class Echo: Sendable {
    let port: UInt16
    private let listener: Int32

    init() throws {
      listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      var name = sockaddr_in()
      name.sin_family = sa_family_t(AF_INET)
      name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let listener = listener
      let bound = withUnsafeMutablePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(listener, $0, size) == 0 && listen(listener, 4) == 0 && getsockname(listener, $0, &size) == 0
        }
      }
      try #require(bound)
      port = UInt16(bigEndian: name.sin_port)
      Thread.detachNewThread {
        while true {
          let peer = accept(listener, nil, nil)
          guard peer >= 0 else { return }
          var buffer = [UInt8](repeating: 0, count: 65_536)
          while case let count = recv(peer, &buffer, buffer.count, 0), count > 0 { _ = send(peer, buffer, count, 0) }
          close(peer)
        }
      }
    }

    deinit {
      shutdown(listener, Int32(SHUT_RDWR))
      close(listener)
    }
  }

  private func dial(_ address: String) throws -> Int32 {
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = (UInt16(address.split(separator: ":").last ?? "") ?? 0).bigEndian
    name.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let connected = withUnsafePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(connected == 0)
    return client
  }

  @Test("the relay passes on what both ends say, and counts bytes and flights of the connection that is")
  func relay() throws {
    let echo = try Echo()
    let relay = try CountingRelay(to: "127.0.0.1:\(echo.port)")
    #expect(!relay.isConnected && relay.count == nil)
    for words in [["hello"], ["a", "bc"]] {
      let client = try dial(relay.address)
      var answers = 0
      for word in words {
        _ = send(client, word, word.utf8.count, 0)
        var buffer = [UInt8](repeating: 0, count: 64)
        let deadline = ContinuousClock.now + .seconds(10)
        var count = -1
        while count < word.utf8.count, ContinuousClock.now < deadline {
          relay.serve(milliseconds: 5)
          count = recv(client, &buffer, buffer.count, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        }
        answers += recv(client, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      }
      let bytes = words.joined().utf8.count
      #expect(answers == bytes && relay.isConnected)
      #expect(
        relay.count?.fromDialer == bytes && relay.count?.fromListener == bytes && relay.count?.byteCount == 2 * bytes)
      #expect(relay.count?.flightsAtListener == 2 * words.count - 1 && relay.count?.flightsAtDialer == 2 * words.count)
      close(client)
      while relay.isConnected { relay.serve(milliseconds: 5) }
    }
    withExtendedLifetime(echo) {}
  }

  @Test("a relay whose target does not listen drops who dials it")
  func deadRelay() throws {
    let relay = try CountingRelay(to: "127.0.0.1:1")
    let client = try dial(relay.address)
    defer { close(client) }
    relay.serve(milliseconds: 20)
    var byte: UInt8 = 0
    #expect(recv(client, &byte, 1, 0) <= 0 && !relay.isConnected && relay.count == nil)
  }
}
