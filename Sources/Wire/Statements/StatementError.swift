/// Why bytes are no statement.
package enum StatementError: Error, Hashable, Sendable {
  case encoding(CBORError)
  case tooLong(byteCount: Int, limit: Int)
  case version(UInt64)
  /// A statement of this kind can be kept and passed on, but not made.
  case unknownKind(UInt16)
  case malformedBody(kind: UInt16, CBORError)
}
