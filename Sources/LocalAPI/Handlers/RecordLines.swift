import Seamesh

/// The lines of a body that hold more than white space, one after another and with their numbers: a list of all lines would take
/// many times the memory of a body that is nothing but line breaks.
struct RecordLines: Sequence, IteratorProtocol {
  typealias Line = (number: Int, bytes: ArraySlice<UInt8>)

  /// Of lines that were passed, blank ones with them.
  private(set) var count = 0
  private var rest: ArraySlice<UInt8>

  init(_ body: [UInt8]) { rest = body[...] }

  mutating func next() -> Line? {
    // Of what is refused no more is looked at.
    while !rest.isEmpty, count <= ServerLimit.importLines {
      let line = rest[..<(rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex)]
      rest = rest[line.endIndex...].dropFirst()
      count += 1
      if line.contains(where: { $0 != 0x20 && $0 != 0x0d && $0 != 0x09 }) { return (count, line) }
    }
    return nil
  }

  /// Refuses what has too many, before one of them is read.
  static func check(_ body: [UInt8]) throws(Problem) {
    var lines = RecordLines(body)
    var records = 0
    while lines.next() != nil {
      records += 1
      guard records <= BulkLimit.requests else {
        throw .limit(.unprocessable, "one import request", BulkLimit.requests, unit: "records")
      }
    }
    guard lines.count <= ServerLimit.importLines else {
      throw .limit(
        .unprocessable, "one import request, blank lines with the others", ServerLimit.importLines, unit: "lines")
    }
  }
}
