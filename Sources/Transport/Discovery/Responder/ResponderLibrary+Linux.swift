import CDNSSD
import Glibc

/// Prepares the DNS-SD library of this system.
///
/// avahi 0.8's compatibility library (Debian 12) leaves callback pointers uninitialised and calls them when the daemon
/// goes away: the process dies. Memory that comes zeroed makes those calls null and harmless, so an allocator that zeroes
/// must be in place before the library's first allocation. (Fixed upstream in 2024.)
enum ResponderLibrary {
  // Written once, below, before any thread of the library exists; only read afterwards.
  private nonisolated(unsafe) static var zeroingAllocator = AvahiAllocator(
    malloc: { calloc(1, $0) }, free: { free($0) }, realloc: { realloc($0, $1) }, calloc: { calloc($0, $1) })

  /// Touch before the first call of the library.
  static let isPrepared: Bool = {
    // Three lines on standard error otherwise, about an interface that is exactly what is wanted here.
    setenv("AVAHI_COMPAT_NOWARN", "1", 1)
    avahi_set_allocator(&zeroingAllocator)
    return true
  }()
}
