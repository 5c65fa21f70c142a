import Replication

/// A value for a query, in PostgreSQL's binary form: nothing is quoted, and nothing is converted.
struct PostgreSQLParameter {
  let type: UInt32
  let bytes: [UInt8]

  private enum Kind {
    static let bytea: UInt32 = 17
    static let int8: UInt32 = 20
    static let int4: UInt32 = 23
    static let text: UInt32 = 25
    static let byteaArray: UInt32 = 1_001
    static let int4Array: UInt32 = 1_007
    static let int8Array: UInt32 = 1_016
    static let textArray: UInt32 = 1_009
  }

  static func bytes(_ bytes: [UInt8]) -> PostgreSQLParameter { PostgreSQLParameter(type: Kind.bytea, bytes: bytes) }

  static func text(_ text: String) -> PostgreSQLParameter {
    PostgreSQLParameter(type: Kind.text, bytes: Array(text.utf8))
  }

  static func long(_ number: Int64) -> PostgreSQLParameter {
    var out: [UInt8] = []
    append(number, to: &out)
    return PostgreSQLParameter(type: Kind.int8, bytes: out)
  }

  static func integer(_ number: Int32) -> PostgreSQLParameter {
    var out: [UInt8] = []
    append(number, to: &out)
    return PostgreSQLParameter(type: Kind.int4, bytes: out)
  }

  static func byteArrays(_ items: some Collection<[UInt8]>) -> PostgreSQLParameter {
    array(items, of: Kind.bytea, as: Kind.byteaArray, byteCount: \.count) { $1 += $0 }
  }

  static func digests(_ items: some Collection<Digest>) -> PostgreSQLParameter {
    array(items, of: Kind.bytea, as: Kind.byteaArray, byteCount: { _ in Digest.byteCount }) { $0.append(to: &$1) }
  }

  static func replicas(_ items: some Collection<ReplicaID>) -> PostgreSQLParameter {
    array(items, of: Kind.bytea, as: Kind.byteaArray, byteCount: { _ in 16 }) { $0.append(to: &$1) }
  }

  static func texts(_ items: some Collection<String>) -> PostgreSQLParameter {
    array(items, of: Kind.text, as: Kind.textArray, byteCount: \.utf8.count) { $1 += Array($0.utf8) }
  }

  static func longs(_ items: some Collection<Int64>) -> PostgreSQLParameter {
    array(items, of: Kind.int8, as: Kind.int8Array, byteCount: { _ in 8 }) { append($0, to: &$1) }
  }

  static func integers(_ items: some Collection<Int32>) -> PostgreSQLParameter {
    array(items, of: Kind.int4, as: Kind.int4Array, byteCount: { _ in 4 }) { append($0, to: &$1) }
  }

  /// One dimension, counted from 1, without nulls.
  private static func array<Items: Collection>(
    _ items: Items, of element: UInt32, as type: UInt32, byteCount: (Items.Element) -> Int,
    _ write: (Items.Element, inout [UInt8]) -> Void
  ) -> PostgreSQLParameter {
    var out: [UInt8] = []
    out.reserveCapacity(items.reduce(20) { $0 + 4 + byteCount($1) })
    append(Int32(items.isEmpty ? 0 : 1), to: &out)
    append(Int32(0), to: &out)
    append(Int32(bitPattern: element), to: &out)
    if !items.isEmpty {
      append(Int32(clamping: items.count), to: &out)
      append(Int32(1), to: &out)
      for item in items {
        append(Int32(clamping: byteCount(item)), to: &out)
        write(item, &out)
      }
    }
    return PostgreSQLParameter(type: type, bytes: out)
  }

  private static func append<Number: FixedWidthInteger>(_ number: Number, to out: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { out.append(contentsOf: $0) }
  }
}

/// Rows of an answer, in binary form.
struct PostgreSQLRows {
  /// Nil where the value is null.
  let rows: [[[UInt8]?]]

  /// Empty where it is null.
  static func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }

  static func integer(_ bytes: [UInt8]?) -> Int64? {
    guard let bytes, bytes.count <= 8 else { return nil }
    let unsigned = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    // Shorter numbers carry their sign in their own first bit.
    let shift = UInt64(8 - bytes.count) * 8
    return shift >= 64 ? 0 : Int64(bitPattern: unsigned << shift) >> shift
  }
}
