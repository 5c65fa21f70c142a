import Foundation
import Glibc
import Synchronization
import TestSupport

@testable import Transport

/// Network namespaces of the test's own, each with a D-Bus and an avahi-daemon where asked for. Needs root and the tools.
final class TestNetwork: Sendable {
  static let isPossible: Bool =
    geteuid() == 0
    && ["ip", "unshare", "mount", "dbus-daemon", "avahi-daemon", "avahi-publish"].allSatisfy { tool in
      ["/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"].contains { access($0 + tool, X_OK) == 0 }
    }
    && (try? TestNetwork(["probe"])) != nil

  let directory: URL
  private let names: [String]
  private let processes = Mutex<[String: ChildProcess]>([:])

  init(_ names: [String]) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "seamesh-net-\(getpid())-\(names[0])")
    self.names = names
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for name in names {
      try run("ip netns add \(namespace(name)) && ip -n \(namespace(name)) link set lo up")
    }
  }

  deinit {
    for process in processes.withLock({ Array($0.values) }) {
      process.signal(SIGCONT)
      process.signal(SIGKILL)
      process.wait()
    }
    for name in names { try? run("ip netns del \(namespace(name))") }
    try? FileManager.default.removeItem(at: directory)
  }

  func namespace(_ name: String) -> String { "seamesh-\(getpid())-\(name)" }

  func run(_ command: String) throws { try ChildProcess.run(command) }

  /// A cable between two namespaces.
  func connect(_ a: String, _ b: String) throws {
    try run(
      """
      ip link add eth0 netns \(namespace(a)) type veth peer name eth0 netns \(namespace(b)) &&
      ip -n \(namespace(a)) addr add 10.77.0.1/24 brd + dev eth0 && ip -n \(namespace(a)) link set eth0 up &&
      ip -n \(namespace(b)) addr add 10.77.0.2/24 brd + dev eth0 && ip -n \(namespace(b)) link set eth0 up
      """)
  }

  // MARK: Daemons

  func busAddress(_ name: String) -> String { "unix:path=\(directory.path)/\(name).bus" }

  private func start(_ key: String, _ command: String) throws {
    let process = try ChildProcess("exec \(command)")
    processes.withLock { $0[key] = process }
  }

  func startBus(_ name: String) throws {
    let configuration = """
      <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
       "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
      <busconfig>
        <type>system</type>
        <listen>\(busAddress(name))</listen>
        <auth>EXTERNAL</auth>
        <policy context="default">
          <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
        </policy>
      </busconfig>
      """
    let file = directory.appending(path: "\(name).bus.conf")
    try configuration.write(to: file, atomically: true, encoding: .utf8)
    try start("bus-\(name)", "dbus-daemon --config-file=\(file.path) --nofork --nopidfile")
    let socket = "\(directory.path)/\(name).bus"
    guard waitUntil({ access(socket, F_OK) == 0 }) else { throw ChildProcess.Failure(command: "dbus-daemon") }
  }

  /// Each daemon gets a `/run/avahi-daemon` of its own, where it insists on keeping its files.
  func startResponder(_ name: String) throws {
    let configuration = """
      [server]
      host-name=\(name)
      [wide-area]
      enable-wide-area=no
      [publish]
      publish-hinfo=no
      publish-workstation=no
      """
    let file = directory.appending(path: "\(name).avahi.conf")
    try configuration.write(to: file, atomically: true, encoding: .utf8)
    try FileManager.default.createDirectory(
      at: URL(filePath: "/run/avahi-daemon"), withIntermediateDirectories: true)
    try start(
      "responder-\(name)",
      """
      ip netns exec \(namespace(name)) unshare -m --propagation private sh -c 'mount -t tmpfs none /run/avahi-daemon &&
      export DBUS_SYSTEM_BUS_ADDRESS=\(busAddress(name)) &&
      exec avahi-daemon --no-drop-root --no-chroot --no-rlimits --no-proc-title -f \(file.path)'
      """)
  }

  func startPublisher(_ name: String, instance: String, port: Int, tag: String) throws {
    try start(
      "publisher-\(name)",
      """
      ip netns exec \(namespace(name)) env DBUS_SYSTEM_BUS_ADDRESS=\(busAddress(name)) \
      avahi-publish -s \(instance) _seamesh._tcp \(port) v=1 t=\(tag)
      """)
  }

  func signal(_ key: String, _ number: Int32) {
    guard let process = processes.withLock({ $0[key] }) else { return }
    process.signal(number)
  }

  func stop(_ key: String, _ number: Int32 = SIGKILL) {
    guard let process = processes.withLock({ $0.removeValue(forKey: key) }) else { return }
    process.signal(number)
    process.wait()
  }

  // MARK: Inside

  /// Runs the body on a thread that lives in the namespace, as do the threads it starts.
  func inside<R: Sendable>(_ name: String, _ body: @escaping @Sendable () throws -> R) throws -> R {
    let path = "/run/netns/\(namespace(name))"
    let done = DispatchSemaphore(value: 0)
    let box = Box<R>()
    Thread.detachNewThread {
      box.set(
        Result {
          guard TestNetwork.enter(path) else { throw ChildProcess.Failure(command: "setns \(path)") }
          return try body()
        })
      done.signal()
    }
    done.wait()
    return try box.get()
  }

  private final class Box<R: Sendable>: Sendable {
    private let outcome = Mutex<Result<R, any Error>?>(nil)
    func set(_ result: Result<R, any Error>) { outcome.withLock { $0 = result } }
    func get() throws -> R {
      guard let result = outcome.withLock({ $0 }) else { throw ChildProcess.Failure(command: "thread") }
      return try result.get()
    }
  }

  /// `setns`, which Swift's Glibc module hides.
  private static func enter(_ path: String) -> Bool {
    let networkNamespace: Int32 = 0x4000_0000
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    guard descriptor >= 0, let symbol = dlsym(nil, "setns") else { return false }
    typealias Function = @convention(c) (Int32, Int32) -> Int32
    return unsafeBitCast(symbol, to: Function.self)(descriptor, networkNamespace) == 0
  }
}
