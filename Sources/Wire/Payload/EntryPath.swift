import Replication

/// The bytes by which operations of one document are ordered: those of the path at which they take effect (rule M2, in
/// paths), the element or member that `list-insert`, `set-add` and `set-remove` add included.
enum EntryPath {
  static let keyTag: UInt8 = 0x06
  static let elementTag: UInt8 = 0x0e
  static let memberTag: UInt8 = 0x0f

  /// Whether `above` names an ancestor. Comparing bytes alone would take a key for one that begins with it and a zero
  /// byte, which is written as 00 FF; no segment begins with FF.
  static func isPrefix(_ above: [UInt8], of path: [UInt8]) -> Bool {
    above.count < path.count && path[above.count] != 0xff && path.starts(with: above)
  }

  static func appendElement(_ position: UnsafeRawBufferPointer, _ dot: Dot, to out: inout [UInt8]) {
    out.append(elementTag)
    for byte in position { appendEscaped(byte, to: &out) }
    appendEscaped(dot.replica.high, to: &out)
    appendEscaped(dot.replica.low, to: &out)
    appendEscaped(dot.sequence, to: &out)
    out.append(0x80)
    out.append(0)
  }

  private static func appendEscaped(_ word: UInt64, to out: inout [UInt8]) {
    for shift in stride(from: 56, through: 0, by: -8) {
      appendEscaped(UInt8(truncatingIfNeeded: word >> UInt64(shift)), to: &out)
    }
  }

  private static func appendEscaped(_ byte: UInt8, to out: inout [UInt8]) {
    out.append(byte)
    if byte == 0 { out.append(0xff) }
  }
}

/// The paths at which operations of one document take effect, made by the change `dot`: one behind the other, since a report has
/// fifty of them.
struct EntryPaths {
  private var bytes: [UInt8] = []
  private var ends = [0]

  init(_ operations: [Operation], dot: Dot) {
    bytes.reserveCapacity(32 * operations.count)
    ends.reserveCapacity(operations.count + 1)
    for operation in operations {
      operation.appendEntryPathBytes(dot: dot, to: &bytes)
      ends.append(bytes.count)
    }
  }

  subscript(place: Int) -> ArraySlice<UInt8> { bytes[ends[place]..<ends[place + 1]] }

  /// Places of the operations, by their paths.
  var ascending: [Int] {
    bytes.withUnsafeBytes { bytes in
      (0..<ends.count - 1).sorted { a, b in
        bytes[ends[a]..<ends[a + 1]].lexicographicallyPrecedes(bytes[ends[b]..<ends[b + 1]])
      }
    }
  }
}

extension Operation {
  /// The bytes of the path at which this operation takes effect, made by the change `dot`.
  fileprivate func appendEntryPathBytes(dot: Dot, to out: inout [UInt8]) {
    for segment in path {
      switch segment {
      case .key(let key): key.appendCanonicalBytes(to: &out)
      case .element(let element):
        element.position.withUnsafeBytes { EntryPath.appendElement($0, element.dot, to: &out) }
      case .member(let canonical):
        out.append(EntryPath.memberTag)
        out.append(contentsOf: canonical)
      }
    }
    switch kind {
    case .listInsert: position.withUnsafeBytes { EntryPath.appendElement($0, dot, to: &out) }
    case .setAdd, .setRemove:
      out.append(EntryPath.memberTag)
      value?.appendCanonicalBytes(to: &out)
    case .set, .remove, .increment, .listRemove: break
    }
  }
}
