import Replication
import Wire

extension World {
  enum SendOutcome { case queued, aboveMark, overflow }

  // MARK: Dialling

  func planDials(_ node: SimulatedNode) {
    queue.put(.dial(slot: node.slot, life: node.life), at: clock + random.between(1...300))
  }

  func dialRound(_ slot: Int, _ life: Int) {
    guard let process = process(slot, life) else { return }
    let linked = Set(process.links.values.map(\.remoteSlot))
    for target in dialTargets[slot] {
      let isDuplicate = linked.contains(target)
      if isDuplicate {
        guard mayCause(.duplicateDial), random.chance(15) else { continue }
        count(.duplicateDial)
      }
      if nodes[target].process != nil { connect(slot, life, to: target) }
    }
    queue.put(.dial(slot: slot, life: life), at: clock + random.between(300...2_500))
  }

  @discardableResult
  func connect(_ slot: Int, _ life: Int, to target: Int) -> UInt64? {
    guard !severed.contains(SlotPair(slot, target)), nodes[target].process != nil else { return nil }
    let number = nextConnection
    nextConnection += 1
    connections[number] = Connection(
      number: number,
      ends: [
        Connection.End(slot: slot, life: life, session: SessionID(rawValue: number)),
        Connection.End(slot: target, life: nodes[target].life, session: SessionID(rawValue: number)),
      ])
    note("\(slot) dials \(target): \(number)")
    let shaken = clock + 3 * latency()
    queue.put(.opened(connection: number, side: 0), at: shaken)
    let heard = shaken + latency()
    connections[number]?.pipes[0].lastArrival = heard
    queue.put(.opened(connection: number, side: 1), at: heard)
    return number
  }

  func latency() -> UInt64 {
    if mayCause(.slowNetwork), random.chance(10) {
      count(.slowNetwork)
      return random.between(100...2_500)
    }
    return random.between(plan.latency)
  }

  func deliverOpened(_ number: UInt64, _ side: Int) {
    guard let connection = connections[number], !connection.ends[side].isClosed else { return }
    let (end, other) = (connection.ends[side], connection.ends[1 - side])
    let exporter = Digest.of(Text("connection \(number)").bytes, FakeCryptography.hash)
    if side == 0, let join = nodes[end.slot].join, join.life == end.life { return join.opened(number, exporter) }
    guard let process = process(end.slot, end.life) else { return abort(number, from: side) }
    process.links[end.session] = NodeProcess.Link(connection: number, side: side, remoteSlot: other.slot)
    process.put(
      .opened(end.session, isDialer: side == 0, peer: nodes[other.slot].key.publicKey, exporter: exporter))
  }

  // MARK: Frames

  func send(_ frame: [UInt8], on number: UInt64, from side: Int) -> SendOutcome {
    guard var connection = connections[number], !connection.ends[side].isClosed else { return .queued }
    let delay = latency()
    var pipe = connection.pipes[side]
    pipe.frames.append(frame)
    pipe.queuedBytes += frame.count
    pipe.lastArrival = max(pipe.lastArrival, clock + delay)
    queue.put(.frame(connection: number, side: side), at: pipe.lastArrival)
    let isAboveMark = pipe.queuedBytes > Connection.pauseByteMark
    pipe.isPaused = pipe.isPaused || isAboveMark
    connections[number] = nil
    connection.pipes[side] = pipe
    connections[number] = connection
    if pipe.queuedBytes > Connection.overflowByteLimit { return .overflow }
    return isAboveMark ? .aboveMark : .queued
  }

  /// `side` is the sender's.
  func deliverFrame(_ number: UInt64, _ side: Int) {
    guard var connection = connections[number] else { return }
    let receiver = connection.ends[1 - side]
    if receiver.stalledUntil > clock {
      return queue.put(.frame(connection: number, side: side), at: receiver.stalledUntil)
    }
    connections[number] = nil
    var pipe = connection.pipes[side]
    let frame = pipe.take()
    let isRelieved = pipe.isPaused && pipe.queuedBytes < Connection.resumeByteMark
    if isRelieved { pipe.isPaused = false }
    connection.pipes[side] = pipe
    connections[number] = connection
    guard let frame, !pipe.isSilent, !receiver.isClosed else { return }
    if isRelieved, let sender = process(connection.ends[side].slot, connection.ends[side].life) {
      sender.put(.drained(connection.ends[side].session))
    }
    trace(2, Digest.of(frame, FakeCryptography.hash).words.0)
    if let join = nodes[receiver.slot].join, join.life == receiver.life, side == 1 {
      return join.received(frame, number)
    }
    process(receiver.slot, receiver.life)?.received(frame, on: receiver.session)
  }

  // MARK: Ends

  /// This end closes. With `afterFlush` what it sent before arrives still.
  func close(_ process: NodeProcess, _ session: SessionID, afterFlush: Bool) {
    guard let link = process.links[session] else { return }
    close(link.connection, side: link.side, afterFlush: afterFlush)
    queue.put(.ended(connection: link.connection, side: link.side), at: clock + 1)
  }

  func close(_ number: UInt64, side: Int, afterFlush: Bool) {
    guard let connection = connections[number], !connection.ends[side].isClosed else { return }
    connections[number]?.ends[side].isClosed = true
    note("\(connection.ends[side].slot) closes \(number)")
    if !afterFlush { connections[number]?.pipes[side].frames = [] }
    guard !connection.pipes[side].isSilent else { return }
    let last = afterFlush ? connection.pipes[side].lastArrival : clock
    // A stalled reader meets the end behind the frames.
    let met = max(last, clock, connection.ends[1 - side].stalledUntil)
    queue.put(.ended(connection: number, side: 1 - side), at: met + random.between(1...60))
  }

  func deliverEnded(_ number: UInt64, _ side: Int) {
    guard let connection = connections[number] else { return }
    let end = connection.ends[side]
    guard !end.isTold else { return }
    connections[number]?.ends[side].end()
    process(end.slot, end.life)?.put(.closed(end.session))
    if let join = nodes[end.slot].join, join.life == end.life, side == 0 { join.closed(number) }
    if connections[number]?.ends.allSatisfy(\.isTold) == true { connections[number] = nil }
  }

  /// Breaks now: all that is under way is lost, and both ends are told, one perhaps later.
  func abort(_ number: UInt64, from side: Int = 0) {
    guard connections[number] != nil else { return }
    for side in 0...1 { connections[number]?.pipes[side].isSilent = true }
    queue.put(.ended(connection: number, side: side), at: clock + random.between(1...20))
    queue.put(.ended(connection: number, side: 1 - side), at: clock + random.between(1...600))
  }
}
