import Replication

extension Change {
  /// An own change with a plain payload, judged and hashed exactly as its receivers will do it.
  ///
  /// - Parameter header: everything but the fields that follow from the payload, which are replaced.
  package static func plain(
    _ header: ChangeHeader, payload: [UInt8], chain: ChainIdentity, _ hash: HashFunction
  ) throws(PayloadError) -> (change: Change, scan: PayloadScan) {
    var scanner = PayloadScanner()
    let dot = Dot(replica: chain.replica, sequence: header.sequence)
    let scan = try scanner.scan(payload[...], dot: dot)
    var hasher = KeyHasher(partition: chain.partition)
    var header = header
    header.codec = .plain
    header.payloadByteCount = UInt32(truncatingIfNeeded: payload.count)
    header.payloadHash = payload.withUnsafeBytes(hash)
    header.keyHashes = try hasher.hashes(of: scan.documents, in: payload[...], hash)
    return (Change(header: header, payload: payload[...]), scan)
  }
}
