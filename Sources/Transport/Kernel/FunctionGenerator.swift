/// A generator around the function for random numbers that the caller hands in.
struct FunctionGenerator: RandomNumberGenerator, Sendable {
  private let function: @Sendable () -> UInt64
  init(_ function: @escaping @Sendable () -> UInt64) { self.function = function }
  mutating func next() -> UInt64 { function() }
}
