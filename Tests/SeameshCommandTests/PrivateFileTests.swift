import Foundation
import Testing

@testable import SeameshCommand

@Suite("Files that their owner alone may read")
final class PrivateFileTests {
  private let directory = NSTemporaryDirectory() + "/seamesh-files-" + UUID().uuidString
  private var path: String { directory + "/code.svg" }
  private let secret = Array("secret".utf8)

  init() throws { try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  private func content(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

  private func facts(_ path: String) -> (kind: mode_t, mode: mode_t) {
    var facts = stat()
    guard lstat(path, &facts) == 0 else { return (0, 0) }
    return (facts.st_mode & S_IFMT, facts.st_mode & 0o777)
  }

  private func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: directory).sorted() }

  @Test(
    "one that others can read is replaced: it has another mode, and who has it open sees nothing of what is written")
  func wideMode() throws {
    try "old".write(toFile: path, atomically: false, encoding: .utf8)
    try #require(chmod(path, 0o644) == 0)
    let reader = try #require(FileHandle(forReadingAtPath: path))
    try checkWritable(path)
    try writePrivateFile(secret, path)
    #expect(try content(path) == "secret" && facts(path) == (S_IFREG, 0o600))
    #expect(try reader.readToEnd() == Data("old".utf8))
    #expect(try names() == ["code.svg"])
  }

  @Test("a link is replaced, and what it led to is as it was", arguments: [true, false])
  func link(isThere: Bool) throws {
    let target = directory + "/theirs"
    if isThere { try "old".write(toFile: target, atomically: false, encoding: .utf8) }
    try #require(symlink(target, path) == 0)
    try writePrivateFile(secret, path)
    #expect(try content(path) == "secret" && facts(path) == (S_IFREG, 0o600))
    #expect(isThere ? try content(target) == "old" : facts(target) == (0, 0))
  }

  @Test("where it cannot be written that is said, what was there stays, and nothing is left behind")
  func refusals() throws {
    let (pipe, device) = (directory + "/pipe", directory + "/device")
    try #require(mkfifo(pipe, 0o600) == 0 && symlink("/dev/null", device) == 0)
    for (place, reason) in [
      (directory, "it is a directory"), (directory + "/none/x.svg", "No such file or directory"),
      (pipe, "no regular file"), (device, "no regular file"),
    ] {
      for refused in [{ try checkWritable($0) }, { try writePrivateFile([1], $0) }] as [(String) throws -> Void] {
        let failure = #expect(throws: Failure.self) { try refused(place) }
        #expect(failure?.message.hasPrefix("cannot write \(place): ") == true && failure?.status == .failed)
        #expect(failure?.message.contains(reason) == true, "\(failure?.message ?? "")")
      }
    }
    #expect(try names() == ["device", "pipe"] && facts(pipe).kind == S_IFIFO && facts(device).kind == S_IFLNK)
  }

  @Test("a file in the working directory is written there")
  func relative() throws {
    let name = "seamesh-files-" + UUID().uuidString
    defer { unlink(name) }
    try checkWritable(name)
    try writePrivateFile(secret, name)
    #expect(try content(name) == "secret" && facts(name) == (S_IFREG, 0o600))
  }
}
