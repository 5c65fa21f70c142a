import Replication

extension JSONRecordReader.Item {
  /// The same item where all of its own stream is kept in one line of another: mistakes are found in that line. Line breaks,
  /// which are white space in a whole record, become blanks, so that columns count through it.
  package func keptInLine(_ line: Int) -> JSONRecordReader.Item {
    switch self {
    case .record(let record):
      .record(
        JSONRecordReader.Record(
          line: line, column: record.column, offset: record.offset,
          bytes: record.bytes.map { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") ? UInt8(ascii: " ") : $0 }))
    case .failure(let failure):
      .failure(
        JSONRecordReader.Failure(
          lines: line...line, byteCount: failure.byteCount, bytes: failure.bytes,
          error: JSONError(
            failure.error.kind, offset: failure.error.offset, line: line, column: failure.error.column,
            path: failure.error.path)))
    }
  }
}
