import Engine
import Foundation
import TestSupport
import Testing

@testable import Seamesh

@Suite struct NodeLogTests {
  @Test("a reader of the log that has stopped holds nobody up, and finds the lines that there was room for")
  func fullPipe() throws {
    let path = NSTemporaryDirectory() + "seamesh-log-\(UUID().uuidString)"
    #expect(mkfifo(path, 0o600) == 0)
    let reader = open(path, O_RDWR | O_NONBLOCK)
    #expect(reader >= 0)
    defer {
      close(reader)
      unlink(path)
    }
    let log = try NodeLog(level: .info, path: path)
    let finished = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      for number in 0..<10_000 {
        log.notice("a line of some length, so that they fill a pipe", ["number": "\(number)"])
      }
      finished.signal()
    }
    let isDone = finished.wait(timeout: .now() + 10) == .success
    #expect(isDone)
    #expect(!log.flush(withinMilliseconds: 10))
    var read: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    func drain() {
      while case let count = Glibc.read(reader, &chunk, chunk.count), count > 0 { read += chunk.prefix(count) }
    }
    // Lets a writer go that waits after all.
    while !isDone, finished.wait(timeout: .now() + 0.001) != .success { drain() }
    for _ in 0..<8 {
      drain()
      log.flush(withinMilliseconds: 100)
    }
    let lines = String(decoding: read, as: UTF8.self).split(separator: "\n")
    #expect(lines.count > 1_000)
    for (number, line) in lines.enumerated() { #expect(line.hasSuffix("number=\(number)")) }
  }

  @Test("lines that a full disk does not take wait, up to a limit, and hold nobody up")
  func fullDisk() throws {
    let log = try NodeLog(level: .info, path: "/dev/full")
    for number in 0..<10_000 { log.notice("a line of some length", ["number": "\(number)"]) }
    #expect(!log.flush(withinMilliseconds: 10))
  }

  @Test("a log file is set aside when it has grown to its limit, whole lines alone, and the oldest go")
  func rotation() throws {
    let path = NSTemporaryDirectory() + "seamesh-log-\(UUID().uuidString)"
    let names = [path] + (1...NodeLog.keptFiles + 2).map { "\(path).\($0)" }
    defer { for name in names { unlink(name) } }
    var log: NodeLog? = try NodeLog(level: .info, path: path, fileByteLimit: 1_000)
    for number in 0..<100 {
      // A start finds what is in the file.
      if number == 50 {
        log = nil
        log = try NodeLog(level: .info, path: path, fileByteLimit: 1_000)
      }
      log?.notice("a line", ["number": "\(number)"])
    }
    log?.flush()
    #expect(names.map(isThere) == [true, true, true, true, false, false])
    var numbers: [Int] = []
    for name in names.prefix(NodeLog.keptFiles + 1).reversed() {
      let text = String(decoding: try #require(content(name)), as: UTF8.self)
      #expect(text.isEmpty || text.hasSuffix("\n"))
      #expect(text.utf8.count < 1_100)
      numbers += text.split(separator: "\n").compactMap { $0.split(separator: "number=").last.flatMap { Int($0) } }
    }
    #expect(numbers == Array((100 - numbers.count)..<100) && numbers.count > 50)
  }
}
