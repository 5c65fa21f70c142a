import Dispatch
import Replication
import Seamesh

/// What two nodes with nothing new have to say when they meet again.
struct ReconnectBench {
  let sizes: BenchSizes
  let scratch: BenchScratch
  let terminal: Terminal

  /// One way. Long beside anything that the machine does meanwhile.
  private static let delayMilliseconds: Int64 = 100
  /// Silence after which nothing more comes.
  private static let quietMilliseconds: Int64 = 1_500

  func run(into report: inout BenchReport) throws(Failure) {
    let fleet = try BenchFleet(scratch, name: "reconnect")
    defer { fleet.stop() }
    try local { () throws(NodeError) in try fleet.node.subscribe("bench/*") }
    let relay = try CountingRelay(to: fleet.address, delay: .milliseconds(ReconnectBench.delayMilliseconds))
    let receiver = try fleet.receiver(through: relay)
    defer { receiver.stop() }
    try receiver.subscribe("bench/*")
    var made = 0
    for wanted in sizes.partitionCounts {
      try makePartitions(made..<wanted, fleet)
      made = wanted
      try fleet.waitUntil("the receiver has every partition", through: relay) { () throws(Failure) in
        try receiver.documentCount() == made
      }
      try measure(made, fleet, relay, receiver, into: &report)
    }
  }

  /// One document each.
  private func makePartitions(_ numbers: Range<Int>, _ fleet: BenchFleet) throws(Failure) {
    let progress = ProgressBar("making partitions", on: terminal)
    var body = ValueMap()
    body["made"] = .bool(true)
    for number in numbers {
      let name = try partitionName("bench/\(number)")
      let request = DocumentRequest(collection: BenchFleet.collection, id: .int(1), action: .insert(body: body))
      try local { () throws(NodeError) in _ = try fleet.node.write(name, [request]) }
      progress.update(done: Int64(number), total: Int64(numbers.upperBound), unit: "partitions")
    }
    progress.finish()
  }

  private func measure(
    _ partitions: Int, _ fleet: BenchFleet, _ relay: CountingRelay, _ receiver: ChildNode,
    into report: inout BenchReport
  ) throws(Failure) {
    try settle(fleet, relay)
    relay.cut()
    try fleet.waitUntil("the receiver dials again", through: relay) { () throws(Failure) in relay.isConnected }
    try settle(fleet, relay)
    guard let count = relay.count else { throw Failure(.failed, "nothing was said on a reconnect") }
    // The delay of a trip there and back.
    func trips(_ last: ContinuousClock.Instant) -> Double {
      ((last - count.acceptedAt).asMilliseconds / Double(ReconnectBench.delayMilliseconds)).rounded() / 2
    }
    let name = "reconnect, \(Figure.text(Double(partitions))) partition\(partitions == 1 ? "" : "s")"
    let bytes = "dialler \(count.fromDialer), listener \(count.fromListener); TLS handshake included"
    report.figures += [
      Figure(
        "reconnect-bytes-\(partitions)", name, Double(count.byteCount), "B", basis: bytes, floor: .atMost(4_096)),
      Figure(
        "reconnect-trips-\(partitions)", name, trips(count.lastAtDialer), "round trips",
        basis: "after TCP connect, until the dialler knows; the listener knows after \(trips(count.lastAtListener))",
        floor: .atMost(2)),
    ]
  }

  private func settle(_ fleet: BenchFleet, _ relay: CountingRelay) throws(Failure) {
    try fleet.waitUntil("the nodes are silent", through: relay) { () throws(Failure) in
      guard let count = relay.count else { return false }
      return (ContinuousClock.now - count.lastArrival).asMilliseconds > Double(ReconnectBench.quietMilliseconds)
    }
  }
}
