import Glibc

/// A child process by posix_spawn. Foundation's `Process` takes a child that closes its inherited descriptors, as daemons
/// do, for one that ended, and then waits for it with every other child.
struct ChildProcess: Sendable {
  let id: pid_t

  struct Failure: Error { let command: String }

  /// Runs `sh -c command` with nothing on its standard input and output.
  init(_ command: String) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var id: pid_t = 0
    let arguments: [UnsafeMutablePointer<CChar>?] = ["sh", "-c", command].map { (text: String) in strdup(text) }
    defer { arguments.forEach { free($0) } }
    guard posix_spawn(&id, "/bin/sh", &actions, nil, arguments + [nil], environ) == 0 else {
      throw Failure(command: command)
    }
    self.id = id
  }

  /// The exit status, or −1 after a signal.
  @discardableResult
  func wait() -> Int32 {
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0, errno == EINTR {}
    return status & 0x7f == 0 ? (status >> 8) & 0xff : -1
  }

  func signal(_ number: Int32) { kill(id, number) }

  static func run(_ command: String) throws {
    guard try ChildProcess(command).wait() == 0 else { throw Failure(command: command) }
  }
}
