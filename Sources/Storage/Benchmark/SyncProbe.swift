#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// How long the disk under a directory takes to make 4 KiB durable: what one own write costs at least.
package struct SyncProbe: Hashable, Sendable {
  package let medianMicroseconds: Double
  package let p99Microseconds: Double

  /// Appends 4 KiB and syncs, `count` times, in a file of its own that is removed again.
  package static func measure(directory: String, count: Int = 200) throws(StoreError) -> SyncProbe {
    let samples = try microseconds(directory: directory, count: count).sorted()
    return SyncProbe(
      medianMicroseconds: samples[samples.count / 2], p99Microseconds: samples[min(samples.count * 99 / 100, count - 1)]
    )
  }

  /// Each sample, in order of time.
  package static func microseconds(directory: String, count: Int) throws(StoreError) -> [Double] {
    precondition(count > 0, "at least one sample")
    let path = directory + "/sync-probe.\(getpid())"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system("open", path) }
    defer {
      close(descriptor)
      unlink(path)
    }
    let block = [UInt8](repeating: 0x5a, count: 4_096)
    var samples: [Double] = []
    for _ in 0..<count {
      let start = ContinuousClock.now
      guard write(descriptor, block, block.count) == block.count else { throw .system("write", path) }
      guard syncData(descriptor) == 0 else { throw .system("sync", path) }
      samples.append((ContinuousClock.now - start) / .microseconds(1))
    }
    return samples
  }

  private static func syncData(_ descriptor: Int32) -> Int32 {
    #if canImport(Glibc)
      fdatasync(descriptor)
    #else
      fsync(descriptor)
    #endif
  }
}
