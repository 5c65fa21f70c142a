import Replication

extension RunCodec {
  /// Reads one run, judges its payloads (rule M4) and computes its hashes, in one pass.
  ///
  /// - Parameters:
  ///   - bytes: exactly one run. The result keeps the buffer alive.
  ///   - form: what may be left out.
  ///   - formats: what is understood.
  ///   - hash: called about three times per change.
  package static func decode(
    _ bytes: ArraySlice<UInt8>, fleet: FleetID, partition: PartitionID, form: RunForm = .whole,
    formats: KnownFormats = .all, hash: HashFunction
  ) throws(RunError) -> DecodedRun {
    guard bytes.count <= form.byteLimit else { throw .tooLong(byteCount: bytes.count, limit: form.byteLimit) }
    var reader = CBORReader(bytes)
    try readingRun(try reader.readArrayHeader(count: fieldCount))
    let replica = try readingRun(try reader.readReplica())
    let first = try readingRun(try reader.readOrdinal())
    let hashBefore = try readingRun(try reader.readDigest())
    let contextDigest = try readingRun(try reader.readDigest())
    let chain = ChainIdentity(fleet: fleet, partition: partition, replica: replica)
    var changes = ChangesDecoder(
      reader, chain: chain, first: first, hashBefore: hashBefore, contextDigest: contextDigest, form: form,
      formats: formats)
    reader = try changes.decode(hash)
    let signature = try readingRun(try reader.readSignature())
    try readingRun(try reader.finish())
    return DecodedRun(
      chain: chain, first: first, hashBefore: hashBefore, contextDigest: contextDigest, signature: signature,
      changes: changes.changes, hashes: changes.hashes, contents: changes.contents, encoded: bytes)
  }

  /// Judges a plain payload that arrived apart from its run, against what the header says of it.
  package static func scanApart(
    _ payload: ArraySlice<UInt8>, of header: ChangeHeader, at dot: Dot, partition: PartitionID, hash: HashFunction
  ) throws(RunError) -> PayloadScan {
    try checkApart(payload, of: header, hash: hash)
    var scanner = PayloadScanner()
    let scan: PayloadScan
    let keyHashes: [KeyHash]
    do throws(PayloadError) {
      scan = try scanner.scan(payload, dot: dot)
      var hasher = KeyHasher(partition: partition)
      keyHashes = try hasher.hashes(of: scan.documents, in: payload, hash)
    } catch {
      throw .malformed(change: dot.sequence, reason: error)
    }
    guard keyHashes == header.keyHashes else { throw .payloadMismatch(change: dot.sequence) }
    return scan
  }
}

extension RunCodec {
  /// Whether a payload that arrived apart is the one that the header names.
  package static func checkApart(
    _ payload: ArraySlice<UInt8>, of header: ChangeHeader, hash: HashFunction
  ) throws(RunError) {
    guard payload.count == Int(header.payloadByteCount), payload.withUnsafeBytes(hash) == header.payloadHash else {
      throw .payloadMismatch(change: header.sequence)
    }
  }

  /// The hash of the payload that travels apart, if the run's only change has one, without reading the rest.
  package static func apartPayload(of bytes: ArraySlice<UInt8>) throws(CBORError) -> Digest? {
    var reader = CBORReader(bytes)
    _ = try reader.readArrayHeader()
    _ = try reader.readReplica()
    _ = try reader.readOrdinal()
    _ = try reader.readDigest()
    _ = try reader.readDigest()
    guard try reader.readArrayHeader() == 1 else { return nil }
    _ = try reader.readArrayHeader()
    _ = try reader.skipValue()
    _ = try reader.skipValue()
    guard try reader.nextMajor() == .array else { return nil }
    try reader.readArrayHeader(count: 2)
    return try reader.readDigest()
  }

  /// Whose run it says it is, and from which change on, of whatever is behind that.
  package static func beginning(of bytes: ArraySlice<UInt8>) throws(CBORError) -> (replica: ReplicaID, first: UInt64) {
    var reader = CBORReader(bytes)
    _ = try reader.readArrayHeader()
    return (try reader.readReplica(), try reader.readOrdinal())
  }

  /// The chain hash before the run, without reading the rest: where it joins its chain.
  package static func hashBefore(of bytes: ArraySlice<UInt8>) throws(CBORError) -> Digest {
    var reader = CBORReader(bytes)
    _ = try reader.readArrayHeader()
    _ = try reader.readReplica()
    _ = try reader.readOrdinal()
    return try reader.readDigest()
  }
}
