extension CBORReader {
  /// Passes over one item of any meaning, checking only that it is deterministic. Returns where it lies.
  @discardableResult
  package mutating func skipValue() throws(CBORError) -> Range<Int> {
    let start = offset
    try skip(depth: CBOR.depthLimit)
    return start..<offset
  }

  private mutating func skip(depth: Int) throws(CBORError) {
    guard depth > 0 else { throw CBORError(.tooDeep, at: offset) }
    switch try nextMajor() {
    case .unsigned, .negative: _ = try argument(try initialByte())
    case .bytes: _ = try readByteRange()
    case .text: _ = try readTextRange()
    case .array: for _ in 0..<(try readArrayHeader()) { try skip(depth: depth - 1) }
    case .map: try skipMap(depth: depth)
    case .tag:
      _ = try readTag()
      try skip(depth: depth - 1)
    case .simple: try skipSimple()
    }
  }

  private mutating func skipMap(depth: Int) throws(CBORError) {
    var previous: Range<Int>?
    for _ in 0..<(try readMapHeader()) {
      let start = offset
      try skip(depth: depth - 1)
      try checkAscent(from: previous, to: start..<offset)
      previous = start..<offset
      try skip(depth: depth - 1)
    }
  }

  /// Keys ascend by their encoded bytes, which also keeps any from standing twice.
  func checkAscent(from previous: Range<Int>?, to key: Range<Int>) throws(CBORError) {
    guard let previous, compare(previous, key) != .before else { return }
    throw CBORError(.keyOrder, at: key.lowerBound)
  }

  mutating func skipSimple() throws(CBORError) {
    switch try initialByte() {
    case CBOR.false, CBOR.true, CBOR.null: offset += 1
    case CBOR.halfFloat, CBOR.singleFloat, CBOR.doubleFloat: _ = try readDouble()
    case 0xff: throw CBORError(.indefiniteLength, at: offset)
    default: throw CBORError(.unsupported, at: offset)
    }
  }
}
