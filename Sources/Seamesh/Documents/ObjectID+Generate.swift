import Glibc
import Replication

extension ObjectID {
  /// Seconds since 1970 and eight random bytes: new ids sort roughly by age, as MongoDB's do.
  package static func make() -> ObjectID {
    var generator = SystemRandomNumberGenerator()
    let seconds = UInt32(truncatingIfNeeded: time(nil))
    return ObjectID(
      high: UInt64(seconds) << 32 | UInt64(UInt32.random(in: 0 ... .max, using: &generator)),
      low: UInt32.random(in: 0 ... .max, using: &generator))
  }
}
