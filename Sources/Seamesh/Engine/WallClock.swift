import Glibc

/// What the machine says the time is. For people and for hybrid timestamps' bounded part, never for a decision.
package enum WallClock {
  package static var milliseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// ISO 8601, UTC, whole seconds.
  static var text: String { formatted("%Y-%m-%dT%H:%M:%SZ") }

  /// The UTC time for a file's name, such as `20260131T235959Z`.
  static var stamp: String { formatted("%Y%m%dT%H%M%SZ") }

  private static func formatted(_ format: String) -> String {
    var seconds = time_t(milliseconds / 1_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var buffer = [CChar](repeating: 0, count: 32)
    let count = strftime(&buffer, buffer.count, format, &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
