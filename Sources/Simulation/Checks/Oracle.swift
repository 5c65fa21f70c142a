import Engine
import Replication
import Wire

/// An onlooker who sees everything and is seen by no node. What it is shown it hands to its checks: each is a value of its own,
/// and judges by what all of them know.
final class Oracle {
  let known: Knowledge
  private var commits: CommitCheck
  private var vectors: VectorCheck
  private var promises: PromiseCheck
  private var frames: FrameCheck
  private var copies: CopyCheck
  private var statements: StatementCheck
  private var comparisons: ComparisonCheck
  private var links: LinkCheck
  let conduct: ConductCheck
  let agreement: AgreementCheck
  let shore: ShoreCheck
  private let states: StateCheck

  init(_ world: World) {
    known = Knowledge(world)
    (commits, vectors, promises) = (CommitCheck(known), VectorCheck(known), PromiseCheck(known))
    (frames, copies, conduct) = (FrameCheck(known), CopyCheck(known), ConductCheck(known: known))
    (statements, comparisons, links) = (StatementCheck(known), ComparisonCheck(known), LinkCheck(known))
    (agreement, shore, states) = (AgreementCheck(known: known), ShoreCheck(known: known), StateCheck(known: known))
  }

  private var world: World { known.world }
  var changeCount: Int { commits.changeCount }

  // MARK: Stores

  /// The store that was opened has what was committed to it, and perhaps a last commit whose outcome nobody knew.
  func opened(_ process: NodeProcess) {
    process.told = process.mesh.partitions.mapValues(\.log.accepted)
    OpeningCheck(known: known).check(process, &commits)
    vectors.check(process)
  }

  /// After a transaction is durable, before anyone is told.
  func committed(_ commit: ObservedCommit, by process: NodeProcess) {
    commits.check(commit, by: process.node)
    copies.committed(commit, by: process)
  }

  /// An older copy takes the place of a store: what it alone held is gone, and nobody's fault.
  func storeIsLost(of node: SimulatedNode, to older: NodeBook) {
    vectors.forget(node)
    promises.storeIsLost(of: node, to: older)
  }

  /// What it makes of its store from now on may be less than before.
  func upgraded(_ node: SimulatedNode) { vectors.forget(node) }

  // MARK: While the run goes on

  func answered(_ job: WriteJob, _ result: Result<ChangeReceipt, RefusedWrite>, by process: NodeProcess) {
    promises.answered(job, result, by: process)
  }

  func check(_ transaction: [KeptIntent], of written: Set<Int>, by process: NodeProcess) {
    IntentCheck(known: known).check(transaction, of: written, by: process)
  }

  /// Of who is not judged it is only noted what he brings: others have it from him, not from those who are.
  func sending(_ frame: [UInt8], by node: SimulatedNode, over link: NodePorts.Link) {
    guard let message = try? MessageCodec.decode(frame[...]) else {
      guard node.isJudged else { return }
      return world.violate("wire", "node \(node.slot) sends what nobody can read")
    }
    guard node.isJudged else { return copies.check(message, by: node, over: link) }
    frames.check(message, of: frame.count, by: node, over: link)
    copies.check(message, by: node, over: link)
    statements.check(message, by: node, over: link)
    comparisons.check(message, by: node, over: link)
    if message == .goodbye(.duplicate) { links.closesSecond(link, node) }
  }

  func delivered(_ frame: [UInt8], to node: SimulatedNode, on connection: UInt64, side: Int) {
    copies.delivered(frame, to: node, on: connection, side: side)
    statements.delivered(frame, to: node, on: connection, side: side)
  }

  func disconnected(_ connection: UInt64) {
    frames.ended(connection)
    copies.ended(connection)
    statements.ended(connection)
    comparisons.ended(connection)
    links.ended(connection)
  }

  func givesUp(_ device: DeviceID, asSurplus isSurplus: Bool, _ process: NodeProcess) {
    if process.node.isJudged { links.givesUp(device, asSurplus: isSurplus, process) }
  }

  func turnEnded(_ process: NodeProcess) {
    copies.takenIn(by: process.node)
    let moved = process.ports.takeRecords()
    BoundCheck(known: known).check(process)
    conduct.check(process)
    links.turnEnded(process)
    FeedCheck(known: known).check(moved, of: process)
    guard !moved.isEmpty, process.node.isJudged else { return }
    vectors.check(process)
    // Judging is slow: now and then while the run goes on, and everywhere at its end.
    let partitions = Set(moved.flatMap { $0.partitions.map(\.partition) }).sorted()
    let percent = partitions.contains { isDelicate(process, $0) } ? Oracle.delicatePercent : world.options.judgedPercent
    guard world.random.chance(percent) else { return }
    for partition in partitions { states.judge(process, partition) }
  }

  /// Not all that is here counts: what a node makes of that may be wrong for a moment only.
  private func isDelicate(_ process: NodeProcess, _ partition: PartitionID) -> Bool {
    guard let log = process.mesh.partitions[partition]?.log else { return false }
    return !log.forkPoints.isEmpty || !log.withoutEffect.isEmpty || !log.heldAbove.isEmpty
  }

  private static let delicatePercent = 20

  // MARK: When all is over

  func finish() {
    if let difference = agreement.disagreement() { world.violate("I14", difference) }
    for process in world.nodes.filter({ $0.isHonest }).compactMap(\.process) {
      for partition in process.mesh.partitions.keys.sorted() { states.judge(process, partition) }
      if process.node.isJudged { WipeCheck(known: known).check(process) }
      states.checkReopening(process)
    }
    promises.finish()
    if let difference = shore.difference() { world.violate("I9", difference) }
  }

  static func text(_ vector: VersionVector?) -> String {
    (vector?.sorted ?? []).map { "\(String($0.replica.high, radix: 36)):\($0.position.sequence)" }.joined(
      separator: " ")
  }
}
