import Replication

/// Reads the changes of one run, each with the state that the one before it left.
struct ChangesDecoder {
  private(set) var changes: [Change] = []
  private(set) var hashes: [Digest] = []
  private(set) var contents: [DecodedRun.Content] = []

  private var reader: CBORReader
  private let chain: ChainIdentity
  private let form: RunForm
  private let formats: KnownFormats
  private var sequence: UInt64
  private var chainHasher: ChainHasher
  private var timestamp: UInt64 = 0
  private var wallMilliseconds: Int64 = 0
  private var payloadByteCount = 0
  private var scanner = PayloadScanner()
  private var keyHasher: KeyHasher

  init(
    _ reader: CBORReader, chain: ChainIdentity, first: UInt64, hashBefore: Digest, contextDigest: Digest, form: RunForm,
    formats: KnownFormats
  ) {
    self.reader = reader
    (self.chain, self.form, self.formats, sequence) = (chain, form, formats, first)
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
    let limit = payload.place == .absent ? Int(UInt16.max) : Run.documentLimit
    let options = fieldCount == 4 ? try readingRun(try reader.readChangeOptions(keyHashLimit: limit)) : ChangeOptions()
    var header = ChangeHeader(
      sequence: sequence, timestamp: HybridTimestamp(rawValue: timestamp),
      wall: WallTime(milliseconds: wallMilliseconds), codec: options.codec,
      payloadByteCount: UInt32(truncatingIfNeeded: payload.byteCount), payloadHash: payload.hash,
      keyHashes: options.keyHashes, extensions: options.extensions)
    let namesKeys = header.isOpaque || payload.place == .apart
    guard payload.place == .absent || header.keyHashes.isEmpty == !namesKeys else {
      throw .options(offset: optionsStart)
    }
    switch payload.place {
    case .absent: contents.append(.absent)
    case _ where formats.recognition(of: header) != .known: contents.append(.held)
    case .apart: contents.append(.apart)
    case .inside:
      contents.append(try judge(payload.inline, &header.keyHashes, hash))
      guard options.keyHashes.isEmpty || options.keyHashes == header.keyHashes else {
        throw .payloadMismatch(change: sequence)
      }
    }
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
  private struct NamedPayload {
    enum Place { case inside, apart, absent }

    let place: Place
    let hash: Digest
    let byteCount: Int
    /// Empty unless it is inside.
    let inline: ArraySlice<UInt8>
  }

  /// A payload has one place, by its size, so that a run has one form.
  private mutating func readPayload(isAlone: Bool, _ hash: HashFunction) throws(RunError) -> NamedPayload {
    guard try readingRun(try reader.nextMajor()) == .array else { return try readInlinePayload(hash) }
    let start = reader.offset
    let fieldCount = try readingRun(try reader.readArrayHeader())
    guard fieldCount == 2 || fieldCount == 3 && form == .withHeadersOnly else {
      throw .encoding(CBORError(.wrongLength, at: start))
    }
    let digest = try readingRun(try reader.readDigest())
    let byteCount = Int(try readingRun(try reader.readUnsigned(UInt32.self)))
    let isAbsent = fieldCount == 3
    if isAbsent { try readingRun(try reader.readNull()) }
    try takeRoom(for: byteCount, isInside: isAbsent && byteCount <= Run.inlinePayloadByteLimit, isAlone: isAlone)
    return NamedPayload(
      place: isAbsent ? .absent : .apart, hash: digest, byteCount: byteCount,
      inline: reader.bytes[reader.offset..<reader.offset])
  }

  private mutating func readInlinePayload(_ hash: HashFunction) throws(RunError) -> NamedPayload {
    let payload = try readingRun(try reader.readBytes())
    try takeRoom(for: payload.count, isInside: true, isAlone: false)
    return NamedPayload(
      place: .inside, hash: payload.withUnsafeBytes(hash), byteCount: payload.count, inline: payload)
  }

  /// Holds a payload against the limits of its place: a header alone against those of the payload that it names.
  private mutating func takeRoom(for byteCount: Int, isInside: Bool, isAlone: Bool) throws(RunError) {
    let isSmall = byteCount <= Run.inlinePayloadByteLimit
    guard byteCount > 0, isSmall == isInside, isSmall || isAlone else { throw .payloadPlace(change: sequence) }
    guard byteCount <= Run.changePayloadByteLimit else {
      throw .payloadByteCount(byteCount, limit: Run.changePayloadByteLimit)
    }
    guard isSmall else { return }
    payloadByteCount += byteCount
    guard payloadByteCount <= Run.payloadByteLimit else {
      throw .payloadByteCount(payloadByteCount, limit: Run.payloadByteLimit)
    }
  }
}
