import Replication

/// The options of one change, each at its usual value until read.
struct ChangeOptions {
  var wallSource: UInt8 = 0
  var wallUncertainty: UInt32 = 0
  var codec = PayloadCodec.plain
  var flags: UInt16 = 0
  var schemaVersion: UInt32 = 0
  var onBehalfOf: Text?
  var group: ChangeGroup?
  var retires: [UInt8] = []
  var origin: ChangeOrigin?
  var extensions: [ChangeExtension] = []
  /// Empty where they follow from the payload.
  var keyHashes: [KeyHash] = []
}

/// The options of one run.
struct RunOptions {
  var grant: Digest?
  var keyEpoch: UInt32?
  var extensions: [ChangeExtension] = []
}

// Layouts of run and change never change, so an option without meaning is refused, and so is one that says what its
// absence says.
extension CBORReader {
  mutating func readRunOptions() throws(CBORError) -> RunOptions {
    var options = RunOptions()
    var keys = try readOptionKeys()
    while let key = try keys.next(&self) {
      switch key {
      case RunOption.grant: options.grant = try readDigest()
      case RunOption.keyEpoch: options.keyEpoch = try readUnsigned(UInt32.self)
      case RunOption.extensions: options.extensions = try readExtensions()
      default: throw CBORError(.unsupported, at: offset)
      }
    }
    return options
  }

  mutating func readChangeOptions() throws(CBORError) -> ChangeOptions {
    var options = ChangeOptions()
    var keys = try readOptionKeys()
    while let key = try keys.next(&self) {
      switch key {
      case ChangeOption.wallSource: options.wallSource = try readUnusual(UInt8.self)
      case ChangeOption.wallUncertainty: options.wallUncertainty = try readUnusual(UInt32.self)
      case ChangeOption.codec: options.codec = PayloadCodec(rawValue: try readUnusual(UInt8.self))
      case ChangeOption.flags: options.flags = try readUnusual(UInt16.self)
      case ChangeOption.schemaVersion: options.schemaVersion = try readUnusual(UInt32.self)
      case ChangeOption.onBehalfOf: options.onBehalfOf = try readUser()
      case ChangeOption.group: options.group = try readGroup()
      case ChangeOption.retires: options.retires = try readRetires()
      case ChangeOption.origin: options.origin = try readOrigin()
      case ChangeOption.extensions: options.extensions = try readExtensions()
      case ChangeOption.keyHashes: options.keyHashes = try readKeyHashes()
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

  /// A number other than zero, which absence stands for.
  private mutating func readUnusual<T: FixedWidthInteger & UnsignedInteger>(_ type: T.Type) throws(CBORError) -> T {
    let start = offset
    let value = try readUnsigned(type)
    guard value != 0 else { throw CBORError(.outOfRange, at: start) }
    return value
  }

  private mutating func readUser() throws(CBORError) -> Text {
    let start = offset
    let user = try readText()
    guard (1...RunCodec.userByteLimit).contains(user.utf8.count) else { throw CBORError(.wrongLength, at: start) }
    return user
  }

  private mutating func readGroup() throws(CBORError) -> ChangeGroup {
    try readArrayHeader(count: 3)
    return ChangeGroup(
      id: try readUUID(), part: try readUnsigned(UInt32.self), parts: try readUnsigned(UInt32.self))
  }

  private mutating func readRetires() throws(CBORError) -> [UInt8] {
    let start = offset
    let content = try readBytes()
    guard (1...RunCodec.retiresByteLimit).contains(content.count) else { throw CBORError(.wrongLength, at: start) }
    return Array(content)
  }

  private mutating func readOrigin() throws(CBORError) -> ChangeOrigin {
    try readArrayHeader(count: 3)
    let dot = Dot(replica: try readReplica(), sequence: try readOrdinal())
    return ChangeOrigin(dot: dot, hash: try readDigest())
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
      let content = try readBytes()
      byteCount += content.count
      guard byteCount <= ChangeExtension.byteLimit else { throw CBORError(.tooLong, at: start) }
      extensions.append(ChangeExtension(type: type, content: Array(content)))
    }
    return extensions
  }

  private mutating func readKeyHashes() throws(CBORError) -> [KeyHash] {
    let start = offset
    let range = try readByteRange()
    let count = range.count / KeyHash.byteCount
    guard range.count % KeyHash.byteCount == 0, (1...Run.documentLimit).contains(count) else {
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
