import Replication

/// Times of tests are so many milliseconds after some beginning.
extension MonotonicTime: ExpressibleByIntegerLiteral {
  public init(integerLiteral milliseconds: UInt64) { self.init(milliseconds: milliseconds) }

  static func + (time: MonotonicTime, milliseconds: UInt64) -> MonotonicTime {
    time.advanced(byMilliseconds: milliseconds)
  }
}
