import Engine
import Glibc
import Identity
import Replication
import SampleData
import Seamesh
import Storage
import Wire

/// What a node takes where much is there: each cost is to follow what changed, and not what lies beside it.
struct ScaleSizes: Sendable {
  var partitions = 10_000
  var chains = 20
  var sessions = 50
  var restSeconds = 60
  var idleMinutes = 10
  var replicas = 1_000
  var replicaChanges = 128_000
  var replicaSingles = 50_000
  var documents = 1_000_000
  var chain = 100_000
  /// Runs of which each cost is the mean.
  var runs = 200

  static let full = ScaleSizes()
  static let quick = ScaleSizes(
    partitions: 100, chains: 4, sessions: 4, restSeconds: 5, idleMinutes: 2, replicas: 20, replicaChanges: 5_120,
    replicaSingles: 1_000, documents: 5_000, chain: 2_000, runs: 20)
}

/// Many partitions of many chains: writing, starting, memory, sessions at rest.
struct ManyPartitionsBench {
  let run: BenchRun
  private var sizes: ScaleSizes { run.sizes.scale }
  private var size: String {
    "\(Figure.text(Double(sizes.partitions))) partitions of \(sizes.chains) chains"
  }

  func measure() throws(Failure) {
    let small = try filled("scale-few", partitions: 1)
    let alone = try ChildNode(directory: small.directory, peers: [])
    let base = try writeMilliseconds(alone, partitions: 1)
    alone.stop()
    let fleet = try filled("scale-partitions", partitions: sizes.partitions)
    var (starts, processor): ([Double], [Double]) = ([], [])
    var resident: Int64 = 0
    for _ in 0..<3 {
      let node = try ChildNode(directory: fleet.directory, peers: [])
      starts.append(node.startUp.asMilliseconds)
      processor.append(node.processorSeconds * 1_000)
      resident = max(resident, node.memory().resident)
      node.stop()
    }
    run.report.add(
      Figure(
        "scale-start", "start, many partitions", Samples(starts).median, "ms",
        basis: "\(size); median of 3; \(Figure.text(Samples(processor).median)) ms of processor time",
        floor: .atMost(1_000)),
      Figure(
        "scale-ready", "memory when ready, many partitions", Double(resident) / 1_048_576, "MiB", basis: size,
        floor: .atMost(96)))
    // Before anything is written: the peers have the same.
    try IdleSessionsBench(run: run, fleet: fleet, size: size).measure()
    let node = try ChildNode(directory: fleet.directory, peers: [])
    let many = try writeMilliseconds(node, partitions: sizes.partitions)
    node.stop()
    run.report.add(
      Figure(
        "scale-commit", "commit beside the write, many partitions", many - base, "ms",
        basis:
          "processor time of a write over HTTP, less that on 1 partition of as many chains, \(Figure.text(base)) ms",
        floor: .atMost(1)))
    try sessions(fleet)
  }

  private static func name(_ number: Int) throws -> PartitionName { try PartitionName(Text("room=\(number)")) }

  /// Each author of a partition has seen those before him there.
  private func filled(_ name: String, partitions: Int) throws(Failure) -> ScaleFleet {
    let fleet = try ScaleFleet(run, name: name)
    try fleet.addAuthors(max(sizes.chains, sizes.sessions), areAdmins: true)
    let progress = ProgressBar("filling \(partitions) partitions", on: run.terminal)
    defer { progress.finish() }
    try fleet.fill { take in
      for number in 0..<partitions {
        var seen = VersionVector()
        for author in fleet.authors.prefix(sizes.chains) {
          let run = try author.run(try ManyPartitionsBench.name(number), seen: seen)
          seen[author.replica] = run.end
          try take(run)
        }
        progress.update(done: Int64(number), total: Int64(partitions), unit: "partitions")
      }
    }
    return fleet
  }

  private func writeMilliseconds(_ node: ChildNode, partitions: Int) throws(Failure) -> Double {
    // The first write draws a replica id, and each partition's first has a new chain.
    let names = (0..<10).map { "room=\($0 * partitions / 10)" }
    func write(_ count: Int, _ round: Int) throws(Failure) {
      for index in 0..<count {
        let target = NodePath.document(names[index % 10], BenchFleet.collection.string, id: "\"w\(round)-\(index)\"")
        _ = try node.client.ask(.init(method: "PUT", target: target, body: Array("{\"number\": \(index)}".utf8)))
      }
    }
    try write(20, 0)
    let before = node.processorSeconds
    try write(sizes.runs, 1)
    return (node.processorSeconds - before) * 1_000 / Double(sizes.runs)
  }

  private func sessions(_ fleet: ScaleFleet) throws(Failure) {
    try measuring {
      let meeting = try ScaleMeeting(fleet)
      let measured = meeting.measured
      measured.beginAccount(withMemory: true)
      let progress = ProgressBar("connecting \(sizes.sessions) sessions", on: run.terminal)
      for index in 0..<sizes.sessions {
        try meeting.connect(as: fleet.authors[index].key)
        progress.update(done: Int64(index), total: Int64(sizes.sessions), unit: "sessions")
      }
      progress.finish()
      let connecting = measured.seconds
      try meeting.advance(60_000)
      guard meeting.liveSessions == sizes.sessions else { throw Failure(.failed, "not all sessions are live") }
      let memory = measured.bytes
      measured.beginAccount()
      let milliseconds = UInt64(sizes.idleMinutes) * 60_000
      try meeting.advance(milliseconds)
      let idle = measured.seconds
      let news = fleet.statements.count
      try fleet.addAuthors(1)
      let start = ScaleEngine.threadSeconds
      guard measured.engine.add(Array(fleet.statements.dropFirst(news))) else {
        throw Failure(.failed, "nobody joined")
      }
      measured.engine.turn([])
      let joining = ScaleEngine.threadSeconds - start
      run.report.add(
        Figure(
          "scale-join", "a device that joins, many partitions", joining * 1_000, "ms",
          basis:
            "\(size) and \(sizes.sessions) sessions; its membership and the declaration of its replica; processor time")
      )
      let basis = "\(size); the engine alone, on a clock that is moved, without TLS"
      run.report.add(
        Figure(
          "scale-connect", "a session that begins, all level", connecting * 1_000 / Double(sizes.sessions), "ms",
          basis: "\(size); processor time"),
        Figure(
          "scale-idle", "\(sizes.sessions) idle sessions", idle * 100_000 / Double(milliseconds),
          "% of a core",
          basis: basis, floor: .atMost(2)),
        Figure(
          "scale-idle-memory", "\(sizes.sessions) idle sessions' memory", Double(memory) / 1_048_576, "MiB",
          basis: basis,
          floor: .atMost(32)))
    }
  }
}

/// One partition to which many replicas have written.
struct ManyReplicasBench {
  let run: BenchRun
  private var sizes: ScaleSizes { run.sizes.scale }

  func measure() throws(Failure) {
    try measure(perRun: Run.changeLimit, count: sizes.replicaChanges)
    try measure(perRun: 1, count: sizes.replicaSingles)
  }

  private func measure(perRun: Int, count: Int) throws(Failure) {
    let one = try rate(replicas: 1, perRun: perRun, count: count)
    let many = try rate(replicas: sizes.replicas, perRun: perRun, count: count)
    run.report.add(
      Figure(
        "scale-replicas-\(perRun)", "catch-up of many replicas, runs of \(perRun)", many.rate / one.rate,
        "of one replica's",
        basis:
          "\(Figure.text(Double(count))) changes by \(sizes.replicas) replicas that have seen one another, "
          + "\(Figure.text(many.rate)) changes/s, and by one, \(Figure.text(one.rate)) changes/s; peak "
          + "\(Figure.text(Double(many.peakBytes) / 1_048_576)) MiB",
        floor: .atLeast(0.5)))
  }

  /// In turns, each with all in sight that was written before.
  private func rate(replicas: Int, perRun: Int, count: Int) throws(Failure) -> CatchUpBench.Round {
    let history = try ScaleFleet(run, name: "scale-replicas-\(replicas)-\(perRun)")
    try history.addAuthors(replicas, areAdmins: true)
    let name = try partitionName("scale-replicas")
    let progress = ProgressBar("signing \(count) changes of \(replicas) replicas", on: run.terminal)
    try history.fill { take in
      var seen = VersionVector()
      for index in 0..<(count / perRun) {
        let author = history.authors[index % replicas]
        var context = seen
        context[author.replica] = nil
        let run = try author.run(name, changes: perRun, seen: context)
        seen[author.replica] = run.end
        try take(run)
        progress.update(done: Int64(index * perRun), total: Int64(count), unit: "changes")
      }
    }
    progress.finish()
    let fleet = try BenchFleet(run, founded: history.directory)
    defer { fleet.stop() }
    var rounds: [CatchUpBench.Round] = []
    for _ in 0..<3 { rounds.append(try fleet.catchUp("scale-replicas", count: count / perRun * perRun)) }
    return rounds.sorted { $0.rate < $1.rate }[1]
  }
}

/// One partition of very many documents.
struct ManyDocumentsBench {
  let run: BenchRun
  private var count: Int { run.sizes.scale.documents }

  private static let asks = 20

  func measure() throws(Failure) {
    let fleet = try BenchFleet(run, name: "scale-documents")
    defer { fleet.stop() }
    let name = "scale-documents"
    try fleet.fill(try partitionName(name), .random, count: count)
    let receiver = try fleet.receiver()
    let round = try fleet.catchUp(name, on: receiver, count: count, isCompared: false)
    receiver.stop()
    let node = try ChildNode(directory: receiver.directory, peers: [fleet.address])
    defer { node.stop() }
    let ready = node.memory().resident
    let first = try milliseconds(node)
    try fleet.waitUntil("the digest is computed") { () throws(Failure) in try node.digest(of: name) != nil }
    let later = try (0..<ManyDocumentsBench.asks).map { (_) throws(Failure) in try milliseconds(node) }
    let target = NodePath.document(name, BenchFleet.collection.string, id: "\"one more\"")
    _ = try node.client.ask(.init(method: "PUT", target: target, body: Array("{}".utf8)))
    let afterWrite = try milliseconds(node)
    let documents = "\(Figure.text(Double(count))) documents in one partition"
    run.report.add(
      Figure(
        "scale-documents-peak", "peak memory in catch-up, many documents", Double(round.peakBytes) / 1_048_576, "MiB",
        basis: "\(documents), \(Figure.text(round.rate)) changes/s", floor: .atMost(192)),
      Figure(
        "scale-documents-ready", "memory when ready, many documents", Double(ready) / 1_048_576, "MiB",
        basis: documents, floor: .atMost(64)),
      Figure(
        "scale-documents-partitions", "partitions, many documents", max(first, afterWrite, Samples(later).best), "ms",
        basis:
          "over HTTP, the slowest of: just after the start, \(Figure.text(first)); just after a write, "
          + "\(Figure.text(afterWrite)); at rest, \(Figure.text(Samples(later).median))",
        floor: .atMost(50)))
  }

  private func milliseconds(_ node: ChildNode) throws(Failure) -> Double {
    let start = ContinuousClock.now
    _ = try node.client.ask(.init(target: "/v1/partitions")).json()
    return (ContinuousClock.now - start).asMilliseconds
  }
}
