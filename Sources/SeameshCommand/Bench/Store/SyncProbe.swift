import Glibc

/// How long the disk under a directory takes to make 4 KiB durable: what one own write costs at least.
enum SyncProbe {
  /// Appends 4 KiB and syncs, `count` times, in a file of its own that is removed again: each sample in order of time.
  static func microseconds(directory: String, count: Int) throws(Failure) -> [Double] {
    let path = directory + "/sync-probe.\(getpid())"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw fileFailure("cannot make \(path)") }
    defer {
      close(descriptor)
      unlink(path)
    }
    let block = [UInt8](repeating: 0x5a, count: 4_096)
    var samples: [Double] = []
    for _ in 0..<count {
      let start = ContinuousClock.now
      guard write(descriptor, block, block.count) == block.count else { throw fileFailure("cannot write \(path)") }
      guard fdatasync(descriptor) == 0 else { throw fileFailure("cannot sync \(path)") }
      samples.append((ContinuousClock.now - start) / .microseconds(1))
    }
    return samples
  }
}
