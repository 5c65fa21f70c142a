import Replication
import Wire

/// The changes of a run with their payloads; one that travelled apart is attached when it is here.
package struct RunContent: Sendable {
  struct ChangeContent: Sendable {
    let header: ChangeHeader
    let payload: ArraySlice<UInt8>
    let documents: [DocumentWriteView]
  }

  let run: DecodedRun
  private let hash: HashFunction
  /// The payload that travelled apart, once attached. A change that has one stands alone in its run. Without a scan where
  /// this build cannot read it: it is kept and passed on with its run all the same.
  private var apart: (payload: [UInt8], scan: PayloadScan?)?

  init(_ run: DecodedRun, hash: @escaping HashFunction) { (self.run, self.hash) = (run, hash) }

  /// The payload that must be here before the run can be taken; nil where none travels apart.
  var awaitedPayload: (hash: Digest, byteCount: Int)? {
    let header = run.changes[0].header
    return apart == nil && header.isApart ? (header.payloadHash, Int(header.payloadByteCount)) : nil
  }

  /// - Throws: ``RunError`` where it is not the payload that the run names, or breaks the rules of payloads.
  mutating func attach(_ payload: [UInt8]) throws(RunError) {
    let header = run.changes[0].header
    if case .held = run.contents[0] {
      try RunCodec.checkApart(payload[...], of: header, hash: hash)
      return apart = (payload, nil)
    }
    let dot = Dot(replica: run.chain.replica, sequence: header.sequence)
    let scan = try RunCodec.scanApart(payload[...], of: header, at: dot, partition: run.chain.partition, hash: hash)
    apart = (payload, scan)
  }

  /// Highest changes whose list elements are named, over all payloads that are here.
  var elementDots: [ReplicaID: UInt64] {
    if let apart { return apart.scan?.elementDots ?? [:] }
    var joined: [ReplicaID: UInt64] = [:]
    for case .documents(let scan) in run.contents { joined.merge(scan.elementDots, uniquingKeysWith: max) }
    return joined
  }

  /// Every change whose payload is here and understood.
  var contents: [ChangeContent] {
    if let apart {
      let header = run.changes[0].header
      return apart.scan.map {
        [ChangeContent(header: header, payload: apart.payload[...], documents: $0.documents)]
      } ?? []
    }
    return zip(run.changes, run.contents).compactMap { change, content in
      guard case .documents(let scan) = content else { return nil }
      return ChangeContent(header: change.header, payload: change.payload, documents: scan.documents)
    }
  }

  /// Every document's write, in payload order.
  var documents: RunDocuments {
    if let apart {
      let payload = ApartPayload(hash: run.changes[0].header.payloadHash, bytes: apart.payload[...])
      return RunDocuments(
        writes: apart.scan.map { placed($0, of: 0) } ?? [], buffer: payload.bytes, apart: payload)
    }
    var writes: [PlacedWrite] = []
    writes.reserveCapacity(run.changes.count)
    for (index, content) in run.contents.enumerated() {
      if case .documents(let scan) = content { writes += placed(scan, of: index) }
    }
    return RunDocuments(writes: writes, buffer: run.encoded)
  }

  private func placed(_ scan: PayloadScan, of index: Int) -> [PlacedWrite] {
    let (sequence, timestamp) = (run.changes[index].header.sequence, run.changes[index].header.timestamp)
    return scan.documents.map { PlacedWrite(sequence: sequence, timestamp: timestamp, view: $0) }
  }
}
