import Replication
import SampleData
import Seamesh
import Wire

/// How many bytes cross the wire in a catch-up, for each byte that the changes carry.
struct WireBench {
  let run: BenchRun
  private var sizes: BenchSizes { run.sizes }

  func measure() throws(Failure) {
    let fleet = try BenchFleet(run, name: "wire")
    defer { fleet.stop() }
    try fleet.fill(try partitionName("bench-wire"), .random, count: sizes.wireDocuments)
    let relay = try CountingRelay(to: fleet.address)
    let receiver = try fleet.receiver(through: relay)
    defer { receiver.stop() }
    let before = relay.count?.byteCount ?? 0
    try receiver.subscribe("bench-wire")
    var wasBehind = false
    try fleet.waitUntil("the receiver has everything", through: relay) { () throws(Failure) in
      let behind = try fleet.peer(receiver)?.behind ?? 0
      wasBehind = wasBehind || behind > 0
      return wasBehind && behind == 0
    }
    let wire = Double((relay.count?.byteCount ?? 0) - before)
    let values = Double(sizes.wireDocuments * BenchmarkDocuments.fieldCount * BenchmarkDocuments.fieldByteCount)
    let payload = Double(payloadByteCount)
    let both = "both directions, TLS included, headers of TCP and IP not"
    run.report.add(
      Figure(
        "wire-per-payload", "bytes on the wire per payload byte", wire / payload, "",
        basis: "payload: \(Figure.text(payload / Double(sizes.wireDocuments))) bytes a change as its author signed it; "
          + both, floor: .atMost(1.6)),
      Figure(
        "wire-per-value", "bytes on the wire per byte of values", wire / values, "",
        basis: "values: 200 bytes a change, without ids and names of fields; \(both)"))
  }

  /// Of all changes, as the author's codec writes them.
  private var payloadByteCount: Int {
    var documents = BenchFleet.documents(.random)
    return (0..<sizes.wireDocuments).reduce(0) { sum, _ in
      guard let document = documents.next() else { return sum }
      let operations = document.body.entries.map { Operation(.set, [.key($0.key)], value: $0.value) }
      let write = DocumentWrite(
        collection: BenchFleet.collection, id: document.id, kind: .create, generation: 1, operations: operations)
      return sum + PayloadEncoder.encode([write], dot: Dot(replica: .zero, sequence: 1)).count
    }
  }
}
