import Replication

/// Reads the changes of one run, each with the state that the one before it left.
struct ChangesDecoder {
  private(set) var changes: [Change] = []
  private(set) var hashes: [Digest] = []
  private(set) var contents: [DecodedRun.Content] = []

  private var reader: CBORReader
  private let chain: ChainIdentity
  private let runExtensions: [ChangeExtension]
  private var sequence: UInt64
  private var chainHasher: ChainHasher
  private var timestamp: UInt64 = 0
  private var wallMilliseconds: Int64 = 0
  private var payloadByteCount = 0
  private var scanner = PayloadScanner()
  private var keyHasher: KeyHasher

  init(
    _ reader: CBORReader, chain: ChainIdentity, first: UInt64, hashBefore: Digest, contextDigest: Digest,
    runExtensions: [ChangeExtension]
  ) {
    self.reader = reader
    (self.chain, self.runExtensions, sequence) = (chain, runExtensions, first)
    chainHasher = ChainHasher(chain: chain, after: hashBefore, contextDigest: contextDigest)
    keyHasher = KeyHasher(partition: chain.partition)
  }

  /// Returns the reader behind the changes.
  mutating func decode(_ hash: HashFunction) throws(RunError) -> CBORReader {
    let count = try readingRun(try reader.readArrayHeader())
    guard (1...Run.changeLimit).contains(count) else { throw .changeCount(count, limit: Run.changeLimit) }
    guard sequence + UInt64(count) <= CBOR.ordinalLimit else { throw .sequence }
    changes.reserveCapacity(count)
    hashes.reserveCapacity(count)
    contents.reserveCapacity(count)
    for _ in 0..<count {
      try decodeChange(isAlone: count == 1, hash)
      sequence += 1
    }
    return reader
  }

  private mutating func decodeChange(isAlone: Bool, _ hash: HashFunction) throws(RunError) {
    let fieldCount = try readingRun(try reader.readArrayHeader())
    guard fieldCount == 3 || fieldCount == 4 else { throw .encoding(CBORError(.wrongLength, at: reader.offset)) }
    try readClocks()
    let payload = try readPayload(isAlone: isAlone, hash)
    let optionsStart = reader.offset
    let options = fieldCount == 4 ? try readingRun(try reader.readChangeOptions()) : ChangeOptions()
    let isOpaque = RunCodec.isOpaque(
      codec: options.codec, extensions: options.extensions, runExtensions: runExtensions)
    let isApart = payload.inline.isEmpty
    guard options.keyHashes.isEmpty == !(isOpaque || isApart) else { throw .options(offset: optionsStart) }
    var keyHashes = options.keyHashes
    contents.append(isOpaque ? .held : isApart ? .apart : try judge(payload.inline, &keyHashes, hash))
    let header = ChangeHeader(
      sequence: sequence, timestamp: HybridTimestamp(rawValue: timestamp),
      wall: WallTime(
        milliseconds: wallMilliseconds, source: options.wallSource,
        uncertaintyMilliseconds: options.wallUncertainty),
      codec: options.codec, flags: options.flags, payloadByteCount: UInt32(truncatingIfNeeded: payload.byteCount),
      payloadHash: payload.hash, keyHashes: keyHashes, schemaVersion: options.schemaVersion,
      onBehalfOf: options.onBehalfOf, group: options.group, retires: options.retires, origin: options.origin,
      extensions: options.extensions)
    hashes.append(chainHasher.append(header, hash))
    changes.append(Change(header: header, payload: payload.inline))
  }

  /// The first change's readings are absolute, later ones differences modulo 2^64.
  private mutating func readClocks() throws(RunError) {
    if changes.isEmpty {
      timestamp = try readingRun(try reader.readUnsigned())
      wallMilliseconds = try readingRun(try reader.readInt())
    } else {
      timestamp &+= UInt64(bitPattern: try readingRun(try reader.readInt()))
      wallMilliseconds &+= try readingRun(try reader.readInt())
    }
  }

  private mutating func judge(
    _ payload: ArraySlice<UInt8>, _ keyHashes: inout [KeyHash], _ hash: HashFunction
  ) throws(RunError) -> DecodedRun.Content {
    do throws(PayloadError) {
      let scan = try scanner.scan(payload, dot: Dot(replica: chain.replica, sequence: sequence))
      keyHashes = try keyHasher.hashes(of: scan.documents, in: payload, hash)
      return .documents(scan)
    } catch {
      throw .malformed(change: sequence, reason: error)
    }
  }
}

extension ChangesDecoder {
  private struct PayloadPlace {
    let hash: Digest
    let byteCount: Int
    /// Empty where the payload is apart.
    let inline: ArraySlice<UInt8>
  }

  /// A payload has one place, by its size, so that a run has one form.
  private mutating func readPayload(isAlone: Bool, _ hash: HashFunction) throws(RunError) -> PayloadPlace {
    guard try readingRun(try reader.nextMajor()) == .array else { return try readInlinePayload(hash) }
    try readingRun(try reader.readArrayHeader(count: 2))
    let digest = try readingRun(try reader.readDigest())
    let byteCount = Int(try readingRun(try reader.readUnsigned(UInt32.self)))
    guard isAlone, byteCount > Run.inlinePayloadByteLimit else { throw .payloadPlace(change: sequence) }
    guard byteCount <= Run.changePayloadByteLimit else {
      throw .payloadByteCount(byteCount, limit: Run.changePayloadByteLimit)
    }
    return PayloadPlace(hash: digest, byteCount: byteCount, inline: reader.bytes[reader.offset..<reader.offset])
  }

  private mutating func readInlinePayload(_ hash: HashFunction) throws(RunError) -> PayloadPlace {
    let payload = try readingRun(try reader.readBytes())
    guard (1...Run.inlinePayloadByteLimit).contains(payload.count) else { throw .payloadPlace(change: sequence) }
    payloadByteCount += payload.count
    guard payloadByteCount <= Run.payloadByteLimit else {
      throw .payloadByteCount(payloadByteCount, limit: Run.payloadByteLimit)
    }
    return PayloadPlace(hash: payload.withUnsafeBytes(hash), byteCount: payload.count, inline: payload)
  }
}
