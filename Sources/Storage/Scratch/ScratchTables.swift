import CSQLite
import Replication

/// A value of a row of somebody's table.
package enum RowValue: Hashable, Comparable, Sendable {
  case null
  case integer(Int64)
  case bytes([UInt8])

  /// As databases put them in order: bytes by their numbers.
  package static func < (a: RowValue, b: RowValue) -> Bool {
    switch (a, b) {
    case (.integer(let a), .integer(let b)): a < b
    case (.bytes(let a), .bytes(let b)): a.lexicographicallyPrecedes(b)
    default: a.rank < b.rank
    }
  }

  private var rank: Int {
    switch self {
    case .null: 0
    case .integer: 1
    case .bytes: 2
    }
  }
}

/// Tables that came in any order, put into the order of their keys on disk: a file that nobody else sees, in the directory
/// that TMPDIR names, gone with this value. Memory is its cache.
package final class ScratchTables {
  private let database: Database
  private var shapes: [String: Shape] = [:]
  private var prepared: [String: PreparedStatement] = [:]

  private struct Shape {
    let columns: Int
    /// Columns of the key, in its order.
    let key: [Int]
  }

  static let cacheKibibytes = 32 * 1024
  /// Rows in one page.
  static let rowLimit = 1_024

  package init() throws(StoreError) {
    // A database without a name is a temporary file.
    database = try Database(path: "", access: .create)
    try database.execute(
      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-\(ScratchTables.cacheKibibytes); BEGIN")
  }

  /// `name` is a plain word of the caller's own.
  package func create(_ name: String, columns: Int, key: [Int]) throws(StoreError) {
    let names = (0..<columns).map { "c\($0)" }.joined(separator: ", ")
    try database.execute("CREATE TABLE \(name) (\(names))")
    shapes[name] = Shape(columns: columns, key: key)
  }

  package func insert(_ row: [RowValue], into name: String) throws(StoreError) {
    let marks = row.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    let statement = try statement("INSERT INTO \(name) VALUES (\(marks))")
    try bind(row, to: statement)
    try statement.run()
  }

  /// To be called once all rows are in.
  package func index() throws(StoreError) {
    for (name, shape) in shapes.sorted(by: { $0.key < $1.key }) {
      try database.execute("CREATE INDEX \(name)_key ON \(name) (\(columns(shape.key)))")
    }
  }

  /// A key that two rows have.
  package func doubledKey(in name: String) throws(StoreError) -> [RowValue]? {
    guard let shape = shapes[name] else { return nil }
    let key = columns(shape.key)
    let statement = try statement("SELECT \(key) FROM \(name) GROUP BY \(key) HAVING count(*) > 1 LIMIT 1")
    defer { statement.reset() }
    return try statement.step() ? shape.key.indices.map { statement.value(Int32($0)) } : nil
  }

  /// Rows behind a key, in order: so many and so many bytes at the most, the last of which may pass it.
  package func page(
    of name: String, after key: [RowValue]?, rows: Int, byteLimit: Int
  ) throws(StoreError) -> [[RowValue]] {
    guard let shape = shapes[name] else { return [] }
    let order = columns(shape.key)
    let condition = key.map { " WHERE (\(order)) > (\($0.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))" } ?? ""
    let limit = min(rows, ScratchTables.rowLimit)
    let statement = try statement("SELECT * FROM \(name)\(condition) ORDER BY \(order) LIMIT \(limit)")
    defer { statement.reset() }
    try bind(key ?? [], to: statement)
    var (found, bytes): ([[RowValue]], Int) = ([], 0)
    while bytes < byteLimit, try statement.step() {
      let row = (0..<shape.columns).map { statement.value(Int32($0)) }
      bytes += row.reduce(0) { if case .bytes(let bytes) = $1 { $0 + bytes.count } else { $0 } }
      found.append(row)
    }
    return found
  }

  package func row(of name: String, _ key: [RowValue]) throws(StoreError) -> [RowValue]? {
    guard let shape = shapes[name] else { return nil }
    let marks = key.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    let statement = try statement("SELECT * FROM \(name) WHERE (\(columns(shape.key))) = (\(marks))")
    defer { statement.reset() }
    try bind(key, to: statement)
    return try statement.step() ? (0..<shape.columns).map { statement.value(Int32($0)) } : nil
  }

  package func count(of name: String) throws(StoreError) -> Int64 {
    try database.integer("SELECT count(*) FROM \(name)") ?? 0
  }

  private func columns(_ numbers: [Int]) -> String { numbers.map { "c\($0)" }.joined(separator: ", ") }

  private func statement(_ sql: String) throws(StoreError) -> PreparedStatement {
    if let known = prepared[sql] { return known }
    let made = try PreparedStatement(database, sql)
    prepared[sql] = made
    return made
  }

  private func bind(_ values: [RowValue], to statement: PreparedStatement) throws(StoreError) {
    for (index, value) in values.enumerated() {
      switch value {
      case .null: try statement.bind(Int32(index + 1), Int64?.none)
      case .integer(let number): try statement.bind(Int32(index + 1), number)
      case .bytes(let bytes): try statement.bind(Int32(index + 1), copied: bytes)
      }
    }
  }
}

extension PreparedStatement {
  fileprivate func value(_ column: Int32) -> RowValue {
    switch type(of: column) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER: .integer(integer(column))
    default: .bytes(bytes(column))
    }
  }
}
