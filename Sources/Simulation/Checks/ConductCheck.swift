import Engine
import Replication
import Wire

/// What nodes hold against one another, and what they owe those who write.
struct ConductCheck: Check {
  let known: Knowledge

  func check(_ process: NodeProcess) {
    checkCharges(of: process)
    checkPatience(of: process)
    checkClaims(of: process)
    checkRest(of: process)
  }

  /// Whatever an honest node sends, every other honest node takes, whatever it knows by then: between two of them nothing is
  /// a breach of the protocol, but for time, which networks, disks and readers waste on purpose here.
  private func checkCharges(of process: NodeProcess) {
    guard process.node.isHonest, world.options.builds == nil else { return }
    for entry in process.engine.conduct where !ConductCheck.mattersOfTime.contains(entry.reason) {
      guard let other = honestNode(entry.source) else { continue }
      world.violate("conduct", "node \(process.node.slot) charges node \(other.slot) with \(entry.reason)")
    }
  }

  /// A device that claimed what nothing followed on is not waited for again, so that no peer holds up writes for long.
  private func checkClaims(of process: NodeProcess) {
    let claims = process.engine.conduct.filter { $0.reason == ConductCheck.emptyClaim && $0.count > 1 }
    guard process.node.isHonest, let claim = claims.first else { return }
    world.violate("claims", "node \(process.node.slot) waits for \(claim.source) \(claim.count) times")
  }

  /// Where nothing comes an engine rests: it wakes for its ticks, and for what is due.
  func checkRest(of process: NodeProcess) {
    guard process.idleTurns > ConductCheck.idleLimit, world.clock < process.idleSince + 1_000 else { return }
    world.violate("idle", "node \(process.node.slot) wakes \(process.idleTurns) times in a second for nothing")
  }

  private static let idleLimit = 100
  private static let emptyClaim = "it claimed to hold more of what this device wrote, and showed none of it"

  /// What an honest peer may be charged with.
  private static let mattersOfTime: Set<String> = [
    "a handshake without end",
    // The copy of a device may have gone before it showed what it claimed.
    emptyClaim,
  ]

  private func honestNode(_ source: ConductBook.Source) -> SimulatedNode? {
    world.nodes.first { node in
      guard node.liar == nil else { return false }
      return switch source {
      case .device(let device, user: _): node.key.device == device
      case .address(let host): "\(node.address.host)" == host
      }
    }
  }

  /// Who says something, if it is only that it lives, is not given up for silence.
  func checkSilence(_ facts: KeyValuePairs<String, JournalFact>, of ports: NodePorts) {
    let patience = world.plan.mesh.deadMilliseconds + ConductCheck.stallMilliseconds
    guard !world.isTroubled, world.clock > world.calmSince + patience, ports.node.liar == nil else { return }
    func text(_ key: String) -> String? {
      facts.lazy.compactMap { if $0.key == key, case .text(let text) = $0.value { text } else { nil } }.first
    }
    guard text("reason") == "silence", let slot = text("address").flatMap({ Int($0) }), slot >= 0,
      world.nodes[slot].liar == nil, world.nodes[slot].process != nil
    else { return }
    let between = ports.links.values.filter { $0.remoteSlot == slot }.compactMap { world.connections[$0.connection] }
    guard between.allSatisfy({ $0.ends.allSatisfy { !$0.isClosed } && !$0.pipes.contains(where: \.isSilent) }) else {
      return
    }
    world.violate("silence", "node \(ports.node.slot) gives up node \(slot), which speaks")
  }

  /// What was sent late still comes.
  private static let stallMilliseconds: UInt64 = 3_000

  /// Between nodes of two builds nothing is a breach of the protocol. Who has lost his peer without a word says as much
  /// to nobody when his patience ends.
  func checkGoodbye(_ frame: [UInt8], by node: SimulatedNode, over link: NodePorts.Link) {
    guard world.options.builds != nil, let message = try? MessageCodec.decode(frame[...]),
      message == .goodbye(.protocolError), let connection = world.connections[link.connection],
      !connection.ends[1 - link.side].isClosed, !connection.pipes.contains(where: \.isSilent)
    else { return }
    world.violate("builds", "node \(node.slot) ends a session with a protocol error")
  }

  // MARK: Writes

  /// Whoever writes is answered as soon as the disk allows, and when it is certain under which replica id: a claim of a
  /// peer's holds a write for two seconds at most.
  private func checkPatience(of process: NodeProcess) {
    guard let oldest = process.takenJobs.min(by: { $0.key < $1.key }) else { return }
    checkPatience(with: oldest.key, takenAt: oldest.value, by: process)
  }

  /// Also where the turn that answers it is the first one since it was due.
  func checkPatience(with job: Int, takenAt: UInt64, by process: NodeProcess) {
    guard process.engine.failure == nil else { return }
    let due = max(takenAt + OwnChainClaims.holdMilliseconds, process.turnDue) + ConductCheck.answerMilliseconds
    guard world.clock > due else { return }
    world.violate("answer", "write \(job) of node \(process.node.slot) waits since \(takenAt)")
  }

  /// Nobody but the one liar claims what is not so, and once that was waited for in vain nothing of his is waited for again,
  /// in whatever partition, until the process ends.
  func checkTrust(in job: Int, takenAt: UInt64, by process: NodeProcess) {
    let begunAt = max(takenAt, process.turnDue)
    guard world.clock > begunAt + ConductCheck.answerMilliseconds, !mayHoldWrites(for: process) else { return }
    if let before = process.heldUntil, begunAt > before {
      world.violate("claims", "write \(job) of node \(process.node.slot) waits, as others did until \(before)")
    }
    process.heldUntil = process.heldUntil ?? world.clock
  }

  /// Honest devices claim what they have where something gave a cause for a new replica id.
  private func mayHoldWrites(for process: NodeProcess) -> Bool {
    !process.node.isJudged || world.report.faults.contains { CommitCheck.causes.contains($0.key) && $0.value > 0 }
  }

  /// Two turns of an idle engine.
  private static let answerMilliseconds: UInt64 = 50

  /// Writes of one partition stand in its chain in the order in which they were asked for.
  func checkOrder(of job: WriteJob, by process: NodeProcess) {
    let last = process.lastWritten[job.partition] ?? 0
    if job.number < last {
      world.violate("order", "node \(process.node.slot) writes \(job.number) behind \(last)")
    }
    process.lastWritten[job.partition] = max(last, job.number)
  }

  /// A write is refused for a reason that whoever asked can understand, and that there is.
  func checkRefusal(_ job: WriteJob, _ refused: RefusedWrite, by process: NodeProcess) {
    let node = process.node
    switch refused.error as? EngineError {
    case .notPermitted where node.isJudged && known.mayWrite(node, job.partition) && process.mightWrite(job.partition):
      world.violate("refusal", "node \(node.slot) may write to \(job.partition.text.string): \(refused.reason)")
    case .otherMembershipLately where !known.hasDrawnLately(node), .renewedLately where !known.hasDrawnLately(node):
      world.violate("refusal", "node \(node.slot) has drawn no replica id in this minute: \(refused.reason)")
    case .ownRunNotTaken, .malformedChange, .payloadNotThere, .payloadSpoiled, .noFleet:
      world.violate("refusal", "node \(node.slot): \(refused.reason)")
    default: break
    }
  }
}
