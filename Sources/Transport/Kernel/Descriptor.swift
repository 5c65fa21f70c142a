import Glibc

/// Owns a file descriptor and closes it. Used by one thread at a time.
final class Descriptor {
  let number: Int32
  init(_ number: Int32) { self.number = number }
  deinit { close(number) }
}
