import Engine
import Replication
import Wire

extension World {
  // MARK: Discovery and dialling

  /// A node that starts is seen by whoever may reach it, some time later, and again and again.
  func announce(_ node: SimulatedNode) {
    queue.put(.sight(slot: node.slot, life: node.life), at: clock + random.between(1...300))
  }

  /// What discovery says is a hint: some of it is stale, and some of it a lie.
  func lookAround(_ slot: Int, _ life: Int) {
    guard let process = process(slot, life) else { return }
    for target in dialTargets[slot] where nodes[target].process != nil {
      var addresses = [nodes[target].address]
      if mayCause(.falseSighting), random.chance(30) {
        count(.falseSighting)
        addresses = [
          random.pick(nodes)?.address ?? addresses[0], SocketAddress(.ipv4(UInt32(random.below(9))), port: 1),
        ]
      }
      let instance = Text("instance \(target) \(nodes[target].life)")
      process.put(
        .sighting(
          .found(instance: instance, addresses: addresses, tagMatches: !mayCause(.falseSighting) || random.chance(80))))
      if mayCause(.falseSighting), random.chance(10) { process.put(.sighting(.lost(instance: instance))) }
    }
    queue.put(.sight(slot: slot, life: life), at: clock + random.between(300...2_500))
  }

  func dial(from node: SimulatedNode, _ life: Int, to address: SocketAddress, tag: UInt64) {
    queue.put(.dialled(slot: node.slot, life: life, to: address, tag: tag), at: clock + latency())
  }

  func deliverDial(_ slot: Int, _ life: Int, to address: SocketAddress, _ tag: UInt64) {
    guard process(slot, life) != nil else { return }
    guard let target = self.slot(at: address), target != slot, isLinked(slot, target),
      connect(slot, life, to: target, tag: tag) != nil
    else {
      // Now and then the failure comes so late that the dial policy has given the attempt up.
      let isLate = mayCause(.slowNetwork) && random.chance(10)
      let patience = random.between(5...(isLate ? 60_000 : isTroubled ? 4_000 : 200) as ClosedRange<UInt64>)
      return queue.put(.dialFailed(slot: slot, life: life, tag: tag), at: clock + patience)
    }
  }

  @discardableResult
  func connect(_ slot: Int, _ life: Int, to target: Int, tag: UInt64 = 0) -> UInt64? {
    guard !severed.contains(SlotPair(slot, target)), nodes[target].process != nil else { return nil }
    let number = nextConnection
    nextConnection += 1
    connections[number] = Connection(
      number: number, tag: tag,
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
    process.ports.opened(end.session, NodePorts.Link(connection: number, side: side, remoteSlot: other.slot))
    process.put(
      .opened(
        OpenedLink(
          session: end.session, dialTag: side == 0 ? connection.tag : nil, remote: nodes[other.slot].address,
          peerKey: nodes[other.slot].key.publicKey, exporter: exporter)))
  }

  // MARK: Frames

  func send(_ frame: [UInt8], on number: UInt64, from side: Int) -> LinkSending {
    guard var connection = connections[number], !connection.ends[side].isClosed else { return .closed }
    var pipe = connection.pipes[side]
    guard pipe.queuedBytes <= plan.queueByteLimit else {
      connections[number]?.pipes[side].isPaused = true
      return .full
    }
    let delay = latency()
    pipe.frames.append(frame)
    pipe.queuedBytes += frame.count
    pipe.lastArrival = max(pipe.lastArrival, clock + delay)
    queue.put(.frame(connection: number, side: side), at: pipe.lastArrival)
    let isAboveMark = pipe.queuedBytes > Connection.pauseByteMark
    if isAboveMark { count(.paused) }
    pipe.isPaused = pipe.isPaused || isAboveMark
    connections[number] = nil
    connection.pipes[side] = pipe
    connections[number] = connection
    return .queued(isLong: pipe.isPaused)
  }

  /// A frame is there, behind those that are not read yet. `side` is the sender's.
  func arrive(_ number: UInt64, _ side: Int) {
    guard let intake = connections[number]?.ends[1 - side].intake else { return }
    guard intake.isPaused || intake.unreadFrames > 0 else { return deliverFrame(number, side) }
    if intake.isPaused { count(.readingPaused) }
    connections[number]?.ends[1 - side].intake.unreadFrames += 1
  }

  /// `side` is the sender's.
  private func deliverFrame(_ number: UInt64, _ side: Int) {
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
    oracle.delivered(frame, to: nodes[receiver.slot], on: number, side: 1 - side)
    trace(2, Digest.of(frame, FakeCryptography.hash).words.0)
    if let join = nodes[receiver.slot].join, join.life == receiver.life, side == 1 {
      return join.received(frame, number)
    }
    process(receiver.slot, receiver.life)?.received(frame, on: receiver.session)
  }

  // MARK: Intake

  /// A frame was handed in at this end, and waits for its engine.
  func taken(_ byteCount: Int, on number: UInt64, side: Int) {
    connections[number]?.ends[side].intake.add(byteCount, limit: plan.intakeByteLimit)
  }

  /// Something is changed about what this end reads; where it reads again, what has arrived comes at once.
  func changeIntake(of number: UInt64, side: Int, _ change: (inout Connection.Intake) -> Void) {
    guard var intake = connections[number]?.ends[side].intake else { return }
    change(&intake)
    connections[number]?.ends[side].intake = intake
    planReading(of: number, side: side)
  }

  /// One frame after the other: each may pause the reading again.
  private func planReading(of number: UInt64, side: Int) {
    guard let intake = connections[number]?.ends[side].intake, !intake.isPaused, intake.unreadFrames > 0,
      !intake.isReadingOn
    else { return }
    connections[number]?.ends[side].intake.isReadingOn = true
    queue.put(.readOn(connection: number, side: side), at: clock)
  }

  /// `side` is the reader's.
  func readOn(_ number: UInt64, _ side: Int) {
    guard let intake = connections[number]?.ends[side].intake else { return }
    connections[number]?.ends[side].intake.isReadingOn = false
    guard !intake.isPaused, intake.unreadFrames > 0 else { return }
    connections[number]?.ends[side].intake.unreadFrames -= 1
    deliverFrame(number, 1 - side)
    planReading(of: number, side: side)
  }

  // MARK: Ends

  /// This end closes. With `afterFlush` what it sent before arrives still.
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
    if let process = process(end.slot, end.life), process.ports.closed(end.session) {
      process.put(.closed(end.session, reason: "ended"))
    }
    if let join = nodes[end.slot].join, join.life == end.life, side == 0 { join.closed(number) }
    if connections[number]?.ends.allSatisfy(\.isTold) == true {
      connections[number] = nil
      oracle.disconnected(number)
    }
  }

  /// Breaks now: all that is under way is lost, and both ends are told, one perhaps later.
  func abort(_ number: UInt64, from side: Int = 0) {
    guard connections[number] != nil else { return }
    for side in 0...1 { connections[number]?.pipes[side].isSilent = true }
    queue.put(.ended(connection: number, side: side), at: clock + random.between(1...20))
    queue.put(.ended(connection: number, side: 1 - side), at: clock + random.between(1...600))
  }
}
