import Replication

/// The form of a run on the wire and in the log (`Docs/PROTOCOL.md`, "Change and run").
///
/// Fleet and partition are known from the place; the context goes beside the run (``ContextCodec``). Whoever receives a
/// run keeps and passes on the bytes as they came.
package enum RunCodec {
  /// The one form of an own run. Its extensions and those of its changes ascend by type.
  package static func encode(_ run: Run) -> [UInt8] {
    let record = run.record
    var writer = CBORWriter(reserving: 256 + run.changes.reduce(0) { $0 + $1.payload.count + 24 })
    let optionCount = record.optionCount
    writer.arrayHeader(optionCount == 0 ? 6 : 7)
    writer.replica(record.chain.replica)
    writer.unsigned(record.first)
    writer.digest(record.hashBefore)
    writer.digest(record.contextDigest)
    if optionCount > 0 { writer.options(of: record, count: optionCount) }
    writer.arrayHeader(run.changes.count)
    var previous: ChangeHeader?
    for change in run.changes {
      writer.change(change, after: previous, runExtensions: record.extensions)
      previous = change.header
    }
    writer.signature(record.signature)
    return writer.bytes
  }
}

extension RunRecord {
  fileprivate var optionCount: Int {
    (grant == nil ? 0 : 1) + (keyEpoch == nil ? 0 : 1) + (extensions.isEmpty ? 0 : 1)
  }
}

extension ChangeHeader {
  fileprivate func optionCount(withKeyHashes: Bool) -> Int {
    let present = [
      wall.source != 0, wall.uncertaintyMilliseconds != 0, codec != .plain, flags != 0, schemaVersion != 0,
      onBehalfOf != nil, group != nil, !retires.isEmpty, origin != nil, !extensions.isEmpty, withKeyHashes,
    ]
    return present.count { $0 }
  }
}

extension CBORWriter {
  fileprivate mutating func options(of record: RunRecord, count: Int) {
    mapHeader(count)
    if let grant = record.grant {
      unsigned(RunOption.grant)
      digest(grant)
    }
    option(RunOption.keyEpoch, UInt64(record.keyEpoch ?? 0), unless: record.keyEpoch == nil)
    extensions(record.extensions, option: RunOption.extensions)
  }

  /// Clock readings are differences to the change before, modulo 2^64, which keeps them short and every pair possible.
  fileprivate mutating func change(
    _ change: Change, after previous: ChangeHeader?, runExtensions: [ChangeExtension]
  ) {
    let header = change.header
    let withKeyHashes =
      header.isApart
      || RunCodec.isOpaque(codec: header.codec, extensions: header.extensions, runExtensions: runExtensions)
    let optionCount = header.optionCount(withKeyHashes: withKeyHashes)
    arrayHeader(optionCount == 0 ? 3 : 4)
    if let previous {
      int(Int64(bitPattern: header.timestamp.rawValue &- previous.timestamp.rawValue))
      int(header.wall.milliseconds &- previous.wall.milliseconds)
    } else {
      unsigned(header.timestamp.rawValue)
      int(header.wall.milliseconds)
    }
    if header.isApart {
      arrayHeader(2)
      digest(header.payloadHash)
      unsigned(header.payloadByteCount)
    } else {
      byteString(change.payload)
    }
    if optionCount > 0 { options(of: header, count: optionCount, withKeyHashes: withKeyHashes) }
  }

  private mutating func options(of header: ChangeHeader, count: Int, withKeyHashes: Bool) {
    mapHeader(count)
    option(ChangeOption.wallSource, UInt64(header.wall.source))
    option(ChangeOption.wallUncertainty, UInt64(header.wall.uncertaintyMilliseconds))
    option(ChangeOption.codec, UInt64(header.codec.rawValue))
    option(ChangeOption.flags, UInt64(header.flags))
    option(ChangeOption.schemaVersion, UInt64(header.schemaVersion))
    if let user = header.onBehalfOf {
      unsigned(ChangeOption.onBehalfOf)
      text(user)
    }
    if let group = header.group {
      unsigned(ChangeOption.group)
      arrayHeader(3)
      uuid(group.id)
      unsigned(group.part)
      unsigned(group.parts)
    }
    if !header.retires.isEmpty {
      unsigned(ChangeOption.retires)
      byteString(header.retires)
    }
    if let origin = header.origin {
      unsigned(ChangeOption.origin)
      arrayHeader(3)
      replica(origin.dot.replica)
      unsigned(origin.dot.sequence)
      digest(origin.hash)
    }
    extensions(header.extensions, option: ChangeOption.extensions)
    if withKeyHashes {
      unsigned(ChangeOption.keyHashes)
      var content: [UInt8] = []
      for key in header.keyHashes { key.append(to: &content) }
      byteString(content)
    }
  }

  /// A number under its option, left out where it has its usual value.
  private mutating func option(_ option: UInt64, _ value: UInt64, unless absent: Bool? = nil) {
    guard !(absent ?? (value == 0)) else { return }
    unsigned(option)
    unsigned(value)
  }

  private mutating func extensions(_ extensions: [ChangeExtension], option: UInt64) {
    guard !extensions.isEmpty else { return }
    precondition(zip(extensions, extensions.dropFirst()).allSatisfy { $0.type < $1.type }, "extensions ascend by type")
    unsigned(option)
    mapHeader(extensions.count)
    for item in extensions {
      unsigned(item.type)
      byteString(item.content)
    }
  }
}
