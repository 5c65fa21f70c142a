import Engine
import Identity
import Replication
import Storage
import Wire

/// What one run, or one session, costs beside a long history that is narrowed, forked or held: the engine alone.
struct ChainCostsBench {
  let run: BenchRun
  private var sizes: ScaleSizes { run.sizes.scale }
  private static let room = "room=1"
  /// A codec that no build knows yet, as that of sealed content.
  private static let unknownCodec = PayloadCodec(rawValue: 7)
  private static let secondsLimit = 60.0
  /// In one commit, so that the disk is not what takes the time.
  private static let runsAtOnce = 20

  func measure() throws(Failure) {
    try narrowing()
    try fork()
    try held()
  }

  // MARK: Narrowing

  private func narrowing() throws(Failure) {
    let before = try remoteRun(narrowed: false)
    let after = try remoteRun(narrowed: true)
    run.report.add(
      Figure(
        "scale-narrowing", "a remote run after a narrowing", after.mean / before.mean, "of that before",
        basis:
          "\(Figure.text(after.mean)) and \(Figure.text(before.mean)) ms of processor time, mean of \(sizes.runs), beside "
          + "\(Figure.text(Double(sizes.chain))) changes; the first \(Figure.text(after.first)) and "
          + "\(Figure.text(before.first)) ms",
        floor: .atMost(1.5)))
  }

  private func remoteRun(narrowed: Bool) throws(Failure) -> (mean: Double, first: Double) {
    let fleet = try ScaleFleet(run, name: "scale-narrowing-\(narrowed)")
    try fleet.addAuthors(2, areAdmins: true)
    let (first, second) = (fleet.authors[0], fleet.authors[1])
    return try measuring {
      let name = try PartitionName(Text(ChainCostsBench.room))
      var seen = VersionVector()
      try fleet.fill { take in
        for _ in 0..<(sizes.chain / Run.changeLimit) {
          let run = try first.run(name, changes: Run.changeLimit)
          seen[first.replica] = run.end
          try take(run)
        }
        let run = try second.run(name, seen: seen)
        seen[second.replica] = run.end
        try take(run)
      }
      let meeting = try ScaleMeeting(fleet)
      if narrowed {
        // They may go on by a grant of their own.
        let ends = Statement.PartitionEnds(
          partition: name.text,
          chains: seen.sorted.map { Statement.ChainEnd(replica: $0.replica, position: $0.position) })
        let statements = [
          try fleet.statement(
            .grant(Statement.Grant(subject: .user(ScaleFleet.user), level: .write, pattern: "*"))),
          try fleet.statement(
            .grant(
              Statement.Grant(
                subject: .everyone, level: .read, pattern: "*", listing: Statement.Listing(ends: [ends])))),
        ]
        guard meeting.measured.engine.add(statements) else { throw Failure(.failed, "nothing was narrowed") }
        meeting.measured.turn { [] }
      }
      var times: [Double] = []
      for _ in 0..<sizes.runs {
        var context = seen
        context[second.replica] = nil
        let run = try second.run(name, seen: context)
        seen[second.replica] = run.end
        meeting.measured.beginAccount()
        try meeting.measured.take([run])
        times.append(meeting.measured.seconds * 1_000)
      }
      guard meeting.measured.accepted(name, second.replica) == UInt64(sizes.runs + 1) else {
        throw Failure(.failed, "what was to count does not")
      }
      return (times.dropFirst().reduce(0, +) / Double(times.count - 1), times[0])
    }
  }

  // MARK: Forks

  private func fork() throws(Failure) {
    let short = try session(forkedChain: sizes.chain / 50)
    let long = try session(forkedChain: sizes.chain)
    run.report.add(
      Figure(
        "scale-fork", "a new session beside a long forked chain", long.milliseconds / short.milliseconds,
        "of that beside a short one",
        basis:
          "that brings one run; \(Figure.text(long.milliseconds)) ms with \(Figure.text(Double(sizes.chain))) changes above the fork, "
          + "\(Figure.text(short.milliseconds)) ms with \(Figure.text(Double(sizes.chain / 50))); both engines' processor "
          + "time in three comparisons, \(Figure.text(Double(long.bytes))) and \(Figure.text(Double(short.bytes))) B",
        floor: .atMost(1.5)))
  }

  private func session(forkedChain length: Int) throws(Failure) -> (milliseconds: Double, bytes: Int) {
    let fleet = try ScaleFleet(run, name: "scale-fork-\(length)")
    try fleet.addAuthors(2, areAdmins: true)
    return try measuring {
      let name = try PartitionName(Text(ChainCostsBench.room))
      let author = fleet.authors[0]
      try fleet.fill { take in
        try take(try author.run(name))
        let start = author.head(name, fleet.fleet)
        for _ in 0..<max(1, length / Run.changeLimit) { try take(try author.run(name, changes: Run.changeLimit)) }
        try take(try author.run(name, fork: start))
      }
      let meeting = try ScaleMeeting(fleet)
      guard meeting.measured.isForked(name, author.replica) else { throw Failure(.failed, "no fork was seen") }
      meeting.measured.beginAccount()
      let news = try fleet.authors[1].run(name)
      try meeting.connect(as: fleet.authors[1].key, with: [news])
      try meeting.advance(90_000)
      guard meeting.liveSessions == 1, meeting.measured.received(name, fleet.authors[1].replica) == 1 else {
        throw Failure(.failed, "the session did not bring what was new")
      }
      return (meeting.seconds * 1_000, meeting.saidBytes)
    }
  }

  // MARK: Held chains

  private func held() throws(Failure) {
    let fleet = try ScaleFleet(run, name: "scale-held")
    try fleet.addAuthors(2, areAdmins: true)
    try measuring {
      let name = try PartitionName(Text(ChainCostsBench.room))
      let author = fleet.authors[0]
      // Somebody else's work there counts.
      try fleet.fill { take in
        for _ in 0..<(sizes.chain / Run.changeLimit / 10 + 1) {
          try take(try fleet.authors[1].run(name, changes: Run.changeLimit))
        }
      }
      let meeting = try ScaleMeeting(fleet)
      let progress = ProgressBar("holding a chain", on: run.terminal)
      defer { progress.finish() }
      var (times, total): ([Double], Double) = ([], 0)
      while times.count < sizes.chain, total < ChainCostsBench.secondsLimit {
        let runs = try (0..<ChainCostsBench.runsAtOnce).map { _ in
          try author.run(name, codec: ChainCostsBench.unknownCodec)
        }
        meeting.measured.beginAccount()
        try meeting.measured.take(runs)
        times += runs.map { _ in meeting.measured.seconds / Double(runs.count) }
        total += meeting.measured.seconds
        progress.update(done: Int64(times.count), total: Int64(sizes.chain), unit: "runs")
      }
      guard meeting.measured.received(name, author.replica) == UInt64(times.count) else {
        throw Failure(.failed, "what was to be held is not here")
      }
      let share = max(1, times.count / 20)
      let (first, last) = (
        times.prefix(share).reduce(0, +) * 1_000 / Double(share),
        times.suffix(share).reduce(0, +) * 1_000 / Double(share)
      )
      run.report.add(
        Figure(
          "scale-held", "a run of one on a long held chain", last / first, "of one on a short",
          basis:
            "\(Figure.text(last)) ms of processor time behind \(Figure.text(Double(times.count))) held changes, "
            + "\(Figure.text(first)) ms behind few; means of \(share)",
          floor: .atMost(1.5)))
    }
  }
}

extension ScaleEngine {
  private func log(_ name: PartitionName) -> PartitionLog? {
    engine.state.mesh.partitions[identity.id(of: name)]?.log
  }

  fileprivate func accepted(_ name: PartitionName, _ replica: ReplicaID) -> UInt64 {
    log(name)?.accepted.sequence(of: replica) ?? 0
  }

  fileprivate func received(_ name: PartitionName, _ replica: ReplicaID) -> UInt64 {
    log(name)?.received.sequence(of: replica) ?? 0
  }

  fileprivate func isForked(_ name: PartitionName, _ replica: ReplicaID) -> Bool {
    log(name)?.forkPoints[replica] != nil
  }
}

extension ScaleAuthor {
  fileprivate func head(_ name: PartitionName, _ fleet: FleetID) -> (sequence: UInt64, hash: Digest)? {
    heads[name.id(fleet: fleet, hash: SHA256.hash)]
  }
}
