import Identity
import Replication
import Storage
import Wire

/// What a run writes, with the payload that travelled apart where it has one.
struct RunContent: Sendable {
  struct ChangeContent: Sendable {
    let header: ChangeHeader
    let payload: ArraySlice<UInt8>
    let documents: [DocumentWriteView]
  }

  let run: DecodedRun
  /// Of a change whose payload travelled apart, which stands alone in its run.
  private(set) var apart: (payload: [UInt8], scan: PayloadScan)?

  init(_ run: DecodedRun) { self.run = run }

  /// A run of the log: its large payload is read where it has one.
  init(_ run: DecodedRun, payloads: borrowing Transaction) throws {
    self.run = run
    guard let hash = awaitedPayload?.hash else { return }
    guard let payload = try payloads.largePayload(hash) else {
      throw StoreError.damaged("a change's payload is not there")
    }
    try attach(payload)
  }

  /// The payload that must be here before the run can be taken; nil where none travels apart.
  var awaitedPayload: (hash: Digest, byteCount: Int)? {
    guard apart == nil, run.contents.count == 1, case .apart = run.contents[0] else { return nil }
    return (run.changes[0].header.payloadHash, Int(run.changes[0].header.payloadByteCount))
  }

  /// - Throws: ``RunError`` where it is not the payload that the run names, or breaks the rules of payloads.
  mutating func attach(_ payload: [UInt8]) throws {
    let header = run.changes[0].header
    let dot = Dot(replica: run.chain.replica, sequence: header.sequence)
    let scan = try RunCodec.scanApart(
      payload[...], of: header, at: dot, partition: run.chain.partition, hash: SHA256.hash)
    apart = (payload, scan)
  }

  var apartPayload: ApartPayload? {
    apart.map { ApartPayload(hash: run.changes[0].header.payloadHash, bytes: $0.payload[...]) }
  }

  /// Highest changes whose list elements are named, over all payloads that are here.
  var elementDots: [ReplicaID: UInt64] { apart?.scan.elementDots ?? run.elementDots }

  /// Of every change whose payload is here and understood.
  var contents: [ChangeContent] {
    if let apart {
      let header = run.changes[0].header
      return [ChangeContent(header: header, payload: apart.payload[...], documents: apart.scan.documents)]
    }
    return zip(run.changes, run.contents).compactMap { change, content in
      guard case .documents(let scan) = content else { return nil }
      return ChangeContent(header: change.header, payload: change.payload, documents: scan.documents)
    }
  }

  /// The buffer in which the documents of all payloads lie that are here.
  var buffer: ArraySlice<UInt8> { apart?.payload[...] ?? run.encoded }

  /// Every document's write, in payload order.
  var writes: [PlacedWrite] {
    if let apart { return placed(apart.scan, of: 0) }
    var writes: [PlacedWrite] = []
    writes.reserveCapacity(run.changes.count)
    for (index, content) in run.contents.enumerated() {
      if case .documents(let scan) = content { writes += placed(scan, of: index) }
    }
    return writes
  }

  private func placed(_ scan: PayloadScan, of index: Int) -> [PlacedWrite] {
    let (sequence, timestamp) = (run.changes[index].header.sequence, run.changes[index].header.timestamp)
    return scan.documents.map { PlacedWrite(sequence: sequence, timestamp: timestamp, view: $0) }
  }

  /// Keeps the large payload for ever, in place of its pieces.
  func storeApart(_ transaction: borrowing Transaction) throws {
    guard let apart else { return }
    let hash = run.changes[0].header.payloadHash
    try transaction.addLargePayload(hash, bytes: apart.payload[...])
    try transaction.removePieces(of: hash)
  }
}
