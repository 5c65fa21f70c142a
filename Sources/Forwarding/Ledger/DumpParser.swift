import Storage
import Wire

/// Finds the rows of a ledger's tables in the text of a dump, line by line. What else is in it, functions above all, is passed
/// over.
struct DumpParser {
  private let name: String
  /// The beginning of a line that has not come to its end.
  private var rest: [UInt8] = []
  /// The rest of this line is of no interest.
  private var isPassingOver = false
  private var section: Section?
  private var found: Set<LedgerTable> = []
  private let wanted: [LedgerTable]
  private var format = 0
  private var (lineNumber, isDump, isComplete) = (0, false, false)

  private struct Section {
    /// Nil: another table's.
    let table: LedgerTable?
    /// For each column of the table its place in the lines.
    let places: [Int]
    let isMigrations: Bool
  }

  /// The longest payload as hexadecimal digits, with room for the rest of its row.
  static let lineByteLimit = 16 * 1024 * 1024

  init(_ name: String, _ wanted: [LedgerTable]) { (self.name, self.wanted) = (name, wanted) }

  /// A dump without its documents, or of the time before they had sums, is one of a ledger nevertheless.
  var hasDocumentSums: Bool { found.contains(.documents) }
  var hasDocumentNotes: Bool { found.contains(.documentPositions) && found.contains(.documentSteps) }

  mutating func take(_ chunk: [UInt8], _ row: (LedgerRow) throws -> Void) throws {
    if lineNumber == 0, rest.isEmpty, chunk.starts(with: Array("PGDMP".utf8)) {
      throw refused(
        "is a dump in PostgreSQL's own form, and plain text is read here",
        "Make it plain: pg_restore --file=PLAIN \(name)")
    }
    var start = chunk.startIndex
    for end in DumpParser.lineEnds(in: chunk) {
      // Of another table's rows only where they end is looked at.
      let isOfInterest = !isPassingOver && (rest.count + end - start <= 2 || !isElsewhere)
      if isOfInterest { try line(rest.isEmpty ? chunk[start..<end] : (rest + chunk[start..<end])[...], row) }
      if !rest.isEmpty { rest = [] }
      isPassingOver = false
      lineNumber += 1
      start = end + 1
    }
    guard !isPassingOver else { return }
    rest += chunk[start...]
    if isElsewhere, rest.count > 2 { (rest, isPassingOver) = ([], true) }
    guard rest.count <= DumpParser.lineByteLimit else {
      throw refused("has a line of more than \(DumpParser.lineByteLimit / 1024 / 1024) MiB, which no ledger has")
    }
  }

  /// To be called at the end of the dump.
  func finish() throws {
    guard isDump else { throw refused("is no dump of PostgreSQL", "Make one: pg_dump --schema=seamesh DATABASE") }
    guard section == nil, rest.isEmpty, isComplete else { throw refused("is cut off: it ends before its end") }
    guard found.contains(.ledger) else {
      throw refused(
        "has no ledger in it: it is of another schema, or has no rows", "Make one: pg_dump --schema=seamesh DATABASE")
    }
    let missing = LedgerTable.ofLedger.filter { !found.contains($0) }
    guard missing.isEmpty else {
      let names = missing.map(\.rawValue).joined(separator: ", ")
      throw refused("lacks the tables \(names)", "Dump the whole schema seamesh.")
    }
    try LedgerFormat.check(format, name)
  }

  private func refused(_ what: String, _ remedy: String = "") -> BackendProblem {
    BackendProblem(.rejected, "\(name) \(what)", remedy: remedy)
  }

  // MARK: Lines

  /// Among the rows of a table that is no part of the ledger.
  private var isElsewhere: Bool { section.map { $0.table == nil && !$0.isMigrations } ?? false }

  private static func lineEnds(in chunk: [UInt8]) -> [Int] {
    chunk.withUnsafeBufferPointer { bytes in bytes.indices.filter { bytes[$0] == 0x0a } }
  }

  private mutating func line(_ line: ArraySlice<UInt8>, _ row: (LedgerRow) throws -> Void) throws {
    guard let section else { return try outside(line) }
    if line.elementsEqual("\\.".utf8) { return self.section = nil }
    if section.isMigrations { return noteFormat(line) }
    guard let table = section.table else { return }
    let fields = line.split(separator: 0x09, omittingEmptySubsequences: false)
    var values: [RowValue] = []
    for (column, place) in zip(table.columns, section.places) {
      guard fields.indices.contains(place), let value = DumpParser.value(fields[place], of: column) else {
        throw LedgerFinding(table, [], "line \(lineNumber + 1) of the dump does not read as a row: \(column.name)")
      }
      values.append(value)
    }
    try row(LedgerRow(table, values))
  }

  private mutating func outside(_ line: ArraySlice<UInt8>) throws {
    if line.elementsEqual("-- PostgreSQL database dump".utf8) { isDump = true }
    if line.elementsEqual("-- PostgreSQL database dump complete".utf8) { isComplete = true }
    if line.starts(with: Array("INSERT INTO seamesh.".utf8)) {
      throw refused("has its rows as INSERT, and COPY is read here", "Make it without --inserts.")
    }
    guard line.starts(with: Array("COPY ".utf8)), line.count < 4_096 else { return }
    section = try section(String(decoding: line, as: UTF8.self))
  }

  /// `COPY seamesh.forks (partition, replica, after) FROM stdin;`
  private mutating func section(_ line: String) throws -> Section {
    let parts = line.dropFirst("COPY ".count).split(separator: " ", maxSplits: 1)
    let names = parts.count == 2 ? parts[1].drop { $0 == "(" }.prefix { $0 != ")" } : ""
    let columns = names.split(separator: ",").map { $0.filter { $0 != "\"" && $0 != " " } }
    guard let target = parts.first, target.hasPrefix("seamesh.") else {
      return Section(table: nil, places: [], isMigrations: false)
    }
    let name = String(target.dropFirst("seamesh.".count))
    let passedOver = Section(table: nil, places: [], isMigrations: name == "migrations")
    guard let table = LedgerTable(rawValue: name), wanted.contains(table) else { return passedOver }
    let places = table.columns.compactMap { columns.firstIndex(of: $0.name) }
    guard places.count == table.columns.count else {
      guard !LedgerTable.ofLedger.contains(table) else {
        throw refused("has a table \(table.rawValue) with other columns")
      }
      return passedOver
    }
    found.insert(table)
    return Section(table: table, places: places, isMigrations: false)
  }

  /// Its first column is the number of a step.
  private mutating func noteFormat(_ line: ArraySlice<UInt8>) {
    let digits = String(decoding: line.prefix { $0 != 0x09 }, as: UTF8.self)
    format = max(format, Int(digits) ?? 0)
  }

  // MARK: Values

  /// Nil where it does not read, or is null and may not be.
  private static func value(_ field: ArraySlice<UInt8>, of column: LedgerTable.Column) -> RowValue? {
    guard !field.elementsEqual("\\N".utf8) else { return column.isNullable ? .null : nil }
    switch column.kind {
    case .number: return Int64(String(decoding: field, as: UTF8.self)).map { .integer($0) }
    case .text: return .bytes(unescaped(field))
    case .time: return DumpTime.microseconds(field).map { .integer($0) }
    case .bytes:
      // COPY doubles the backslash of bytea's `\x`.
      guard field.starts(with: "\\\\x".utf8) else { return nil }
      return decodeHexadecimal(field.dropFirst(3)).map { .bytes($0) }
    }
  }

  private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
    var (out, isEscaped): ([UInt8], Bool) = ([], false)
    for byte in field {
      if isEscaped {
        out.append(escapes[byte] ?? byte)
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else {
        out.append(byte)
      }
    }
    return out
  }

  private static let escapes: [UInt8: UInt8] = [
    UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10, UInt8(ascii: "r"): 13, UInt8(ascii: "t"): 9,
    UInt8(ascii: "v"): 11,
  ]
}
