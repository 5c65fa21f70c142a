import Glibc
import Replication
import Wire

/// A node in a process of its own: this very program, run as `seamesh run`.
final class ChildNode {
  private static let readyMilliseconds: Int64 = 60_000

  let directory: String
  /// Device id, as the ready line names it.
  let device: String
  /// From the program's start to its ready line.
  let startUp: Duration
  /// Where other nodes reach it.
  let listen: String
  let client: NodeClient
  private let process: ChildProcess

  /// Starts it on a directory that was set up, and waits for its ready line.
  init(directory: String, peers: [String]) throws(Failure) {
    self.directory = directory
    let arguments = [
      "run", "--data=\(directory)", "--listen=127.0.0.1:0", "--no-discovery", "--json", "--log-level=error",
    ]
    let start = ContinuousClock.now
    process = try ChildProcess(try ChildNode.thisProgram(), arguments + peers.map { "--peer=\($0)" })
    let line = ChildNode.firstLine(of: process.output)
    startUp = ContinuousClock.now - start
    guard let ready = try? ExtendedJSON.parseMap(line), ready.text("event") == "ready" else {
      process.end()
      throw Failure(.failed, "a second node did not become ready")
    }
    device = ready.text("device")
    listen = ready.texts("listen").first ?? ""
    client = try NodeClient(directory: directory)
  }

  deinit { stop() }

  func stop() { process.end() }

  /// Bytes in memory: now, and at most since the start.
  func memory() -> (resident: Int64, peak: Int64) {
    let status = SystemFile.fields("/proc/\(process.id)/status")
    func bytes(_ key: String) -> Int64 { Int64(status[key]?.split(separator: " ").first ?? "").map { $0 * 1_024 } ?? 0 }
    return (bytes("VmRSS"), bytes("VmHWM"))
  }

  /// Of the processor, since its start; in hundredths.
  var processorSeconds: Double {
    let fields = SystemFile.text("/proc/\(process.id)/stat").split(separator: " ")
    // The name, which alone may have spaces, is that of this program.
    guard fields.count > 14, let user = Double(fields[13]), let system = Double(fields[14]) else { return 0 }
    return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  func subscribe(_ pattern: String) throws(Failure) {
    _ = try client.ask(.init(method: "PUT", target: "/v1/subscriptions/" + NodePath.encoded(pattern)))
  }

  func documentCount() throws(Failure) -> Int64 {
    try client.ask(.init(target: "/v1/status")).json().number("documents")
  }

  /// State digest of a partition; nil where it is not there or not computed yet.
  func digest(of partition: String) throws(Failure) -> String? {
    let found = try client.ask(.init(target: "/v1/partitions")).json().list("partitions")
      .first { $0.text("name") == partition }
    return found.flatMap { $0.text("digestState") == "computed" ? $0.text("digest") : nil }
  }

  private static func thisProgram() throws(Failure) -> String {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { throw Failure(.failed, "this program's own file is not known") }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  private static func firstLine(of descriptor: Int32) -> [UInt8] {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    let deadline = monotonicMilliseconds() + readyMilliseconds
    while monotonicMilliseconds() < deadline {
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&waiting, 1, Int32(clamping: deadline - monotonicMilliseconds())) > 0 else { continue }
      guard read(descriptor, &byte, 1) == 1, byte != UInt8(ascii: "\n") else { break }
      line.append(byte)
    }
    return line
  }
}
