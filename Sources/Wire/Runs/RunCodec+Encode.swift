import Replication

/// The form of a run on the wire and in the log (`Docs/PROTOCOL.md`, "Change and run").
///
/// Fleet and partition are known from the place; the context goes beside the run (``ContextCodec``). Whoever receives a
/// run keeps and passes on the bytes as they came.
package enum RunCodec {
  /// The one form of an own run. The extensions of its changes ascend by type.
  package static func encode(_ run: Run) -> [UInt8] { encoded(run).bytes }

  /// The run with the changes at these indices as their headers alone.
  package static func encode(_ run: Run, headersOnly: Set<Int>) -> [UInt8] {
    encoded(run, headersOnly: headersOnly).bytes
  }

  /// As ``encode(_:)``, with the index at which the payload of each change begins; nil for one that is not in the bytes.
  package static func encoded(
    _ run: Run, headersOnly: Set<Int> = []
  ) -> (bytes: [UInt8], payloadStarts: [Int?]) {
    let record = run.record
    var writer = CBORWriter(reserving: 256 + run.changes.reduce(0) { $0 + $1.payload.count + 24 })
    writer.arrayHeader(fieldCount)
    writer.replica(record.chain.replica)
    writer.unsigned(record.first)
    writer.digest(record.hashBefore)
    writer.digest(record.contextDigest)
    writer.arrayHeader(run.changes.count)
    var previous: ChangeHeader?
    var payloadStarts: [Int?] = []
    for (index, change) in run.changes.enumerated() {
      payloadStarts.append(writer.change(change, after: previous, isHeaderOnly: headersOnly.contains(index)))
      previous = change.header
    }
    writer.signature(record.signature)
    return (writer.bytes, payloadStarts)
  }
}

extension CBORWriter {
  /// Clock readings are differences to the change before, modulo 2^64, which keeps them short and every pair possible.
  /// Answers where the payload begins, if it is among the bytes.
  fileprivate mutating func change(_ change: Change, after previous: ChangeHeader?, isHeaderOnly: Bool) -> Int? {
    let header = change.header
    let keyHashes = isHeaderOnly || header.isApart || header.isOpaque ? header.keyHashes : []
    let optionCount = [header.codec != .plain, !header.extensions.isEmpty, !keyHashes.isEmpty].count { $0 }
    arrayHeader(optionCount == 0 ? 3 : 4)
    if let previous {
      int(Int64(bitPattern: header.timestamp.rawValue &- previous.timestamp.rawValue))
      int(header.wall.milliseconds &- previous.wall.milliseconds)
    } else {
      unsigned(header.timestamp.rawValue)
      int(header.wall.milliseconds)
    }
    var payloadStart: Int?
    if isHeaderOnly || header.isApart {
      payloadName(header, isAbsent: isHeaderOnly)
    } else {
      byteString(change.payload)
      payloadStart = bytes.count - change.payload.count
    }
    guard optionCount > 0 else { return payloadStart }
    mapHeader(optionCount)
    if header.codec != .plain {
      unsigned(ChangeOption.codec)
      unsigned(header.codec.rawValue)
    }
    extensions(header.extensions)
    self.keyHashes(keyHashes)
    return payloadStart
  }

  private mutating func payloadName(_ header: ChangeHeader, isAbsent: Bool) {
    arrayHeader(isAbsent ? 3 : 2)
    digest(header.payloadHash)
    unsigned(header.payloadByteCount)
    if isAbsent { null() }
  }

  private mutating func extensions(_ extensions: [ChangeExtension]) {
    guard !extensions.isEmpty else { return }
    precondition(zip(extensions, extensions.dropFirst()).allSatisfy { $0.type < $1.type }, "extensions ascend by type")
    unsigned(ChangeOption.extensions)
    mapHeader(extensions.count)
    for item in extensions {
      unsigned(item.type)
      byteString(item.content)
    }
  }

  private mutating func keyHashes(_ keyHashes: [KeyHash]) {
    guard !keyHashes.isEmpty else { return }
    unsigned(ChangeOption.keyHashes)
    var content: [UInt8] = []
    content.reserveCapacity(keyHashes.count * KeyHash.byteCount)
    for key in keyHashes { key.append(to: &content) }
    byteString(content)
  }
}
