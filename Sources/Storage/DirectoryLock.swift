#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Holds a data directory for this process (K8). The system gives the lock back when the process ends, however it ends.
package final class DirectoryLock: Sendable {
  package let directory: String
  private let descriptor: Int32

  package static let fileName = "lock"

  /// Refused with ``StoreError/alreadyRunning(process:directory:)`` while another process, or another owner in this one,
  /// holds it.
  package init(directory: String) throws(StoreError) {
    let path = directory + "/" + DirectoryLock.fileName
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system("open", path) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      defer { close(descriptor) }
      guard errno == EWOULDBLOCK else { throw .system("lock", path) }
      throw .alreadyRunning(process: DirectoryLock.process(in: descriptor), directory: directory)
    }
    // The number only serves the other's message: a full disk must not keep this node from starting.
    let text = Array("\(getpid())\n".utf8)
    if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
    (self.directory, self.descriptor) = (directory, descriptor)
  }

  deinit {
    // Closing alone would leave the lock with a child that is between fork and exec at this moment.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private static func process(in descriptor: Int32) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: bytes.prefix(count).prefix { $0 != 0x0a }, as: UTF8.self))
  }
}
