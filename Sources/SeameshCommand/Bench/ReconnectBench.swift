import Replication
import Seamesh

/// What two nodes with nothing new have to say when they meet again.
struct ReconnectBench {
  let run: BenchRun

  /// One way: longer than an end takes to say all that it has to say at once.
  private static let delayMilliseconds: Int64 = 60
  /// Silence after which nothing more comes.
  private static let quietMilliseconds: Int64 = 1_000
  /// RFC 8446 §2: the dialler may speak after one.
  private static let roundTripsOfTLS = 1.0

  func measure() throws(Failure) {
    let fleet = try BenchFleet(run, name: "reconnect")
    defer { fleet.stop() }
    try local { () throws(NodeError) in _ = try fleet.node.subscribe("bench/*") }
    let relay = try CountingRelay(to: fleet.address, delay: .milliseconds(ReconnectBench.delayMilliseconds))
    let receiver = try fleet.receiver(through: relay)
    defer { receiver.stop() }
    try receiver.subscribe("bench/*")
    var made = 0
    for wanted in run.sizes.partitionCounts {
      try makePartitions(made..<wanted, fleet, relay)
      made = wanted
      try fleet.waitUntil("the receiver has every partition", through: relay) { () throws(Failure) in
        try receiver.documentCount() == made
      }
      try measure(made, fleet, relay, receiver)
    }
  }

  /// One document each.
  private func makePartitions(_ numbers: Range<Int>, _ fleet: BenchFleet, _ relay: CountingRelay) throws(Failure) {
    let progress = ProgressBar("making partitions", on: run.terminal)
    defer { progress.finish() }
    var body = ValueMap()
    body["made"] = .bool(true)
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: BulkLimit.requests) {
      let requests = try (start..<min(start + BulkLimit.requests, numbers.upperBound)).map { number throws(Failure) in
        let request = DocumentRequest(collection: BenchFleet.collection, id: .int(1), action: .insert(body: body))
        return (try partitionName("bench/\(number)"), request)
      }
      try local { () throws(NodeError) in
        for result in try fleet.node.writeEach(requests) { _ = try result.get() }
      }
      relay.serve(milliseconds: ReconnectBench.delayMilliseconds)
      progress.update(done: Int64(start), total: Int64(numbers.upperBound), unit: "partitions")
    }
  }

  private func measure(
    _ partitions: Int, _ fleet: BenchFleet, _ relay: CountingRelay, _ receiver: ChildNode
  ) throws(Failure) {
    try settle(fleet, relay)
    relay.cut()
    try fleet.waitUntil("the receiver dials again", through: relay) { () throws(Failure) in relay.isConnected }
    try settle(fleet, relay)
    guard let count = relay.count, let peer = try fleet.peer(receiver), peer.state == .connected else {
      throw Failure(.failed, "the nodes did not meet again")
    }
    let (dialler, listener) = (Double(count.flightsAtDialer) / 2, Double(count.flightsAtListener) / 2)
    let name = "reconnect, \(Figure.text(Double(partitions))) partition\(partitions == 1 ? "" : "s")"
    run.report.add(
      Figure(
        "reconnect-bytes-\(partitions)", name, Double(count.byteCount), "B",
        basis: "all of it, TLS handshake included; dialler \(count.fromDialer), listener \(count.fromListener)",
        floor: .atMost(4_096)),
      Figure(
        "reconnect-message-bytes-\(partitions)", name + ", messages", Double(peer.sentBytes + peer.receivedBytes), "B",
        basis:
          "after the TLS handshake, before TLS seals them; dialler \(peer.receivedBytes), listener \(peer.sentBytes)",
        floor: .atMost(1_100)),
      Figure(
        "reconnect-trips-\(partitions)", name, max(dialler, listener) - ReconnectBench.roundTripsOfTLS, "round trips",
        basis:
          "after the TLS handshake, until both know; with it \(dialler) until the dialler knows, \(listener) until "
          + "the listener does", floor: .atMost(1.5)))
  }

  private func settle(_ fleet: BenchFleet, _ relay: CountingRelay) throws(Failure) {
    try fleet.waitUntil("the nodes are silent", through: relay) { () throws(Failure) in
      guard let count = relay.count else { return false }
      return (ContinuousClock.now - count.lastArrival).asMilliseconds > Double(ReconnectBench.quietMilliseconds)
    }
  }
}
