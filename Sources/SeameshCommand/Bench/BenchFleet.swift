import Engine
import Glibc
import Replication
import SampleData
import Seamesh
import Transport

/// A new fleet whose first node runs in this process, and whose others are processes of their own, all on loopback.
final class BenchFleet {
  static let collection: Text = "bench"
  private static let pollMilliseconds: Int32 = 2

  let node: Node
  let address: String
  private let run: BenchRun
  private var receiverCount = 0

  convenience init(_ run: BenchRun, name: String) throws(Failure) {
    let directory = try run.scratch.directory(name)
    try local { () throws(NodeError) in
      _ = try NodeSetup.found(directory, fleetName: "bench", user: "bench", label: "sender", profile: ValueMap())
    }
    try self.init(run, founded: directory)
  }

  /// - Parameter directory: of a node that founded a fleet.
  init(_ run: BenchRun, founded directory: String) throws(Failure) {
    self.run = run
    var configuration = NodeConfiguration()
    configuration.listenHost = .ipv4(0x7f00_0001)
    configuration.usesDiscovery = false
    configuration.logLevel = .error
    let node = try local { () throws(NodeError) in
      try Node.start(directory: directory, configuration: configuration)
    }
    address = try local { () throws(NodeError) in try node.status().listen.first ?? "" }
    self.node = node
  }

  func stop() { node.stop() }

  /// Enters another device into the fleet and runs it, connected to this node but wanting nothing yet.
  ///
  /// - Parameter other: an address that it dials beside this node's.
  func receiver(
    through relay: CountingRelay? = nil, alsoFrom other: String? = nil
  ) throws(Failure) -> ChildNode {
    receiverCount += 1
    let directory = try run.scratch.directory("receiver-\(receiverCount)-\(address.split(separator: ":").last ?? "")")
    guard let dialled = PeerAddress(address) else { throw Failure(.failed, "\(address) is no address") }
    try local { () throws(NodeError) in
      let code = try node.invite(InviteRequest(user: "bench", role: "officer", profile: ValueMap())).code
      _ = try NodeSetup.join(directory, code: code, label: "receiver", peers: [dialled], usesDiscovery: false)
    }
    let child = try ChildNode(directory: directory, peers: [relay?.address ?? address] + (other.map { [$0] } ?? []))
    try waitUntil("the receiver is connected", through: relay) { () throws(Failure) in
      try self.peer(child)?.state == .connected
    }
    return child
  }

  /// How this node sees the other one.
  func peer(_ child: ChildNode) throws(Failure) -> PeerStatus? {
    try local { () throws(NodeError) in try node.peers().first { $0.device == child.device } }
  }

  /// Looks again every few milliseconds; the relay works meanwhile.
  func waitUntil(
    _ what: String, through relay: CountingRelay? = nil, _ condition: () throws(Failure) -> Bool
  ) throws(Failure) {
    let progress = ProgressBar("waiting until \(what):", on: run.terminal)
    defer { progress.finish() }
    let start = monotonicMilliseconds()
    while monotonicMilliseconds() < start + run.sizes.waitMilliseconds {
      if try condition() { return }
      progress.update(done: (monotonicMilliseconds() - start) / 1_000, total: nil, unit: "s")
      if let relay {
        relay.serve(milliseconds: Int64(BenchFleet.pollMilliseconds))
      } else {
        _ = poll(nil, 0, BenchFleet.pollMilliseconds)
      }
    }
    throw Failure(.failed, "gave up waiting until \(what)")
  }

  /// Writes `count` new documents, each as a change of its own, through the node's own path.
  func fill(_ partition: PartitionName, _ order: BenchmarkDocuments.IDOrder, count: Int) throws(Failure) {
    let progress = ProgressBar("writing documents with \(order.rawValue) ids", on: run.terminal)
    defer { progress.finish() }
    var documents = BenchFleet.documents(order)
    for start in stride(from: 0, to: count, by: BulkLimit.requests) {
      let requests = (start..<min(start + BulkLimit.requests, count)).compactMap { _ in documents.next() }
        .map { DocumentRequest(collection: BenchFleet.collection, id: $0.id, action: .insert(body: $0.body)) }
      try local { () throws(NodeError) in
        for result in try node.writeEach(partition, requests) { _ = try result.get() }
      }
      progress.update(done: Int64(start), total: Int64(count), unit: "documents")
    }
  }

  /// How fast a node that has nothing takes in a partition, and what that costs it: from the moment at which it is asked to
  /// want it, until this node has its word that all of it is on disk.
  func catchUp(
    _ partition: String, on other: ChildNode? = nil, count: Int, isCompared: Bool = true
  ) throws(Failure) -> CatchUpBench.Round {
    let receiver = if let other { other } else { try self.receiver() }
    defer { if other == nil { receiver.stop() } }
    // What earlier rounds wrote is not to be carried to the disk at this one's expense.
    sync()
    let start = ContinuousClock.now
    try receiver.subscribe(partition)
    var wasBehind = false
    var elapsed = Duration.zero
    try waitUntil("the receiver has everything") { () throws(Failure) in
      let behind = try self.peer(receiver)?.behind ?? 0
      wasBehind = wasBehind || behind > 0
      elapsed = ContinuousClock.now - start
      return wasBehind && behind == 0
    }
    let peak = receiver.memory().peak
    guard try receiver.documentCount() == count else {
      throw Failure(.failed, "the receiver does not hold what was sent")
    }
    if isCompared { try compare(receiver, partition) }
    return CatchUpBench.Round(rate: Double(count) / elapsed.asSeconds, peakBytes: peak)
  }

  /// Speed counts only where the state is the same.
  private func compare(_ receiver: ChildNode, _ partition: String) throws(Failure) {
    var (expected, found): (String?, String?)
    try waitUntil("the states are compared") { () throws(Failure) in
      expected = try local { () throws(NodeError) in
        try self.node.partitions(withDigests: true).first { $0.name == partition }?.digest
      }
      found = try receiver.digest(of: partition)
      return expected != nil && found != nil
    }
    guard found == expected else { throw Failure(.failed, "the receiver does not hold what was sent") }
  }

  /// The same ones in every run.
  static func documents(_ order: BenchmarkDocuments.IDOrder) -> BenchmarkDocuments.Iterator {
    BenchmarkDocuments(seed: seed, order: order).makeIterator()
  }

  private static let seed: UInt64 = 0x5ea_3e54
}

func partitionName(_ text: String) throws(Failure) -> PartitionName {
  do throws(PartitionName.Invalid) { return try PartitionName(Text(text)) } catch {
    throw Failure(.failed, "\(text) is no name of a partition")
  }
}
