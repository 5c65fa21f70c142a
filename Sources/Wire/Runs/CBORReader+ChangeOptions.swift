import Replication

/// The options of one change, each at its usual value until read.
struct ChangeOptions {
  var codec = PayloadCodec.plain
  var extensions: [ChangeExtension] = []
  /// Empty where they follow from the payload.
  var keyHashes: [KeyHash] = []
}

// Layouts of run and change never change, so an option without meaning is refused, and so is one that says what its
// absence says.
extension CBORReader {
  /// - Parameter keyHashLimit: documents that one change can have.
  mutating func readChangeOptions(keyHashLimit: Int = Run.documentLimit) throws(CBORError) -> ChangeOptions {
    var options = ChangeOptions()
    var keys = try readOptionKeys()
    while let key = try keys.next(&self) {
      switch key {
      case ChangeOption.codec: options.codec = try readCodec()
      case ChangeOption.extensions: options.extensions = try readExtensions()
      case ChangeOption.keyHashes: options.keyHashes = try readKeyHashes(limit: keyHashLimit)
      default: throw CBORError(.unsupported, at: offset)
      }
    }
    return options
  }

  /// A map without options is left out, not written empty.
  private mutating func readOptionKeys() throws(CBORError) -> OptionKeys {
    let start = offset
    let count = try readMapHeader()
    guard count > 0 else { throw CBORError(.wrongLength, at: start) }
    return OptionKeys(count: count)
  }

  private mutating func readCodec() throws(CBORError) -> PayloadCodec {
    let start = offset
    let codec = PayloadCodec(rawValue: try readUnsigned(UInt8.self))
    guard codec != .plain else { throw CBORError(.outOfRange, at: start) }
    return codec
  }

  private mutating func readExtensions() throws(CBORError) -> [ChangeExtension] {
    let start = offset
    let count = try readMapHeader()
    guard (1...ChangeExtension.countLimit).contains(count) else { throw CBORError(.wrongLength, at: start) }
    var keys = OptionKeys(count: count)
    var extensions: [ChangeExtension] = []
    var byteCount = 0
    while let key = try keys.next(&self) {
      guard let type = UInt16(exactly: key) else { throw CBORError(.outOfRange, at: start) }
      let item = ChangeExtension(type: type, content: try readExtension(type))
      byteCount += item.content.count
      guard byteCount <= ChangeExtension.byteLimit else { throw CBORError(.tooLong, at: start) }
      extensions.append(item)
    }
    return extensions
  }

  /// Every build judges the content of the types that the first one read, and of no others: what a later build learns to
  /// read it must not refuse, since older ones pass it on.
  private mutating func readExtension(_ type: UInt16) throws(CBORError) -> [UInt8] {
    let start = offset
    let content = Array(try readBytes())
    if type == ChangeExtension.Registered.origin, ChangeOrigin(content) == nil {
      throw CBORError(.outOfRange, at: start)
    }
    return content
  }

  private mutating func readKeyHashes(limit: Int) throws(CBORError) -> [KeyHash] {
    let start = offset
    let range = try readByteRange()
    let count = range.count / KeyHash.byteCount
    guard range.count % KeyHash.byteCount == 0, (1...limit).contains(count) else {
      throw CBORError(.wrongLength, at: start)
    }
    return (0..<count).map { index in
      let place = range.lowerBound + index * KeyHash.byteCount
      return KeyHash(high: wordContent(at: place), low: wordContent(at: place + 8))
    }
  }
}

/// The keys of a map of options: unsigned, ascending.
private struct OptionKeys {
  private var left: Int
  private var previous: UInt64?

  init(count: Int) { left = count }

  /// Nil after the last.
  mutating func next(_ reader: inout CBORReader) throws(CBORError) -> UInt64? {
    guard left > 0 else { return nil }
    let start = reader.offset
    let key = try reader.readUnsigned()
    if let previous, key <= previous { throw CBORError(.keyOrder, at: start) }
    (left, previous) = (left - 1, key)
    return key
  }
}
