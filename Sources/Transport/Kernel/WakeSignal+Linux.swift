import CLinux
import Glibc
import Kernel

/// Wakes a thread that waits for descriptors. Any thread may call ``wake()``.
final class WakeSignal: Sendable {
  let descriptor: Int32

  init() throws(SystemError) {
    let number = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
    guard number >= 0 else { throw SystemError("eventfd") }
    self.descriptor = number
  }

  deinit { close(descriptor) }

  func wake() { eventfd_write(descriptor, 1) }

  func clear() {
    var count: eventfd_t = 0
    eventfd_read(descriptor, &count)
  }
}
