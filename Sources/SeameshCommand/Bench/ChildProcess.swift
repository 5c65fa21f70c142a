import Glibc

/// A program that this one runs, and whose standard output it reads.
final class ChildProcess {
  let id: pid_t
  let output: Int32
  private var hasEnded = false

  init(_ program: String, _ arguments: [String]) throws(Failure) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw ChildProcess.failure("pipe", errno) }
    defer { close(ends[1]) }
    // Held by nobody else, so that its end shows.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    // Its own signals, whatever this thread holds back.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var id = pid_t()
    let code = posix_spawn(&id, program, &actions, &attributes, &words, environ)
    guard code == 0 else {
      close(ends[0])
      throw ChildProcess.failure("posix_spawn", code)
    }
    (self.id, output) = (id, ends[0])
  }

  deinit {
    end()
    close(output)
  }

  /// Asks it to end, and waits until it has.
  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    kill(id, SIGTERM)
    while waitpid(id, nil, 0) < 0, errno == EINTR {}
  }

  private static func failure(_ operation: String, _ code: Int32) -> Failure {
    Failure(.failed, "a program could not be started: \(operation): \(String(cString: strerror(code)))")
  }
}
