/// Why a run is refused. Refused runs are neither stored nor passed on (rule C7).
package enum RunError: Error, Hashable, Sendable {
  case encoding(CBORError)
  case tooLong(byteCount: Int, limit: Int)
  case changeCount(Int, limit: Int)
  /// Payload bytes of all changes; one larger payload stands alone and travels apart.
  case payloadByteCount(Int, limit: Int)
  /// A payload apart from its run that is small enough to be in it or stands beside other changes, or the reverse.
  case payloadPlace(change: UInt64)
  /// Options that are absent where they must be given, or the reverse, or do not ascend.
  case options(offset: Int)
  case sequence
  /// The change breaks rule M4.
  case malformed(change: UInt64, reason: PayloadError)
  /// A payload that arrived apart is not the one that its change names.
  case payloadMismatch(change: UInt64)
  case contextDigest
  case signature
}

/// A piece of reading, with its error as one of the run's.
@inline(__always)
func readingRun<Result>(_ read: @autoclosure () throws(CBORError) -> Result) throws(RunError) -> Result {
  do throws(CBORError) { return try read() } catch { throw .encoding(error) }
}
