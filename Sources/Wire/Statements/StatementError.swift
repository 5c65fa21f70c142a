import Replication

/// Why bytes are no statement.
package enum StatementError: Error, Hashable, Sendable {
  case encoding(CBORError)
  case tooLong(byteCount: Int, limit: Int)
  case version(UInt64)
  /// A statement of this kind can be kept and passed on, but not made.
  case unknownKind(UInt16)
  /// A statement that was to be made breaks a limit of its kind.
  case notReadBack(kind: UInt16)
  /// Not even what is read in every shape of this kind can be read.
  case malformedBody(kind: UInt16, CBORError)
  /// A room's creation names no scope: its room is named after itself.
  case scopedCreation
}

extension StatementReading {
  package init(_ error: StatementError) {
    if case .version = error { self = .laterVersion } else { self = .broken }
  }
}
