import Replication
import Wire

/// The connections of this node and whom to dial next. Knows sessions by number alone; what is said on them is the
/// core's.
package final class LinkDirector {
  let port: any EngineLinks
  private let clock: any EngineClock
  private let journal: any EngineJournal
  package private(set) var table = LinkTable()
  package private(set) var policy: DialPolicy
  private var random: any RandomNumberGenerator

  /// As it was adopted last.
  private var authority: Authority
  private var answersRenewedAt = MonotonicTime(milliseconds: 0)

  init(_ ports: EnginePorts, device: DeviceID, _ authority: Authority) {
    self.authority = authority
    (port, clock, journal, random) = (ports.links, ports.clock, ports.journal, ports.random)
    policy = DialPolicy(thisDevice: device)
  }

  func text(of address: SocketAddress) -> String { port.text(of: address) }
  func host(of id: SessionID) -> SocketAddress.Host? { table[id]?.remote.host }
  package func address(_ id: SessionID?) -> String { id.flatMap { table[$0] }.map { port.text(of: $0.remote) } ?? "?" }

  // MARK: Dialling

  /// Tells the dial policy something about where peers may be, dials whom it names, and closes links that it gives up.
  func follow(_ event: DialPolicy.Event) {
    for address in policy.handle(event, now: clock.now, using: &random) {
      port.dial(address, tag: table.beginDial(address))
    }
    while let dropped = policy.takeDrop() { drop(dropped) }
  }

  var nextWake: MonotonicTime? { policy.nextWake() }

  func dialFailed(_ tag: UInt64, _ outcome: DialOutcome) {
    guard let address = table.endDial(tag) else { return }
    table.note(outcome, at: address)
    journal.note(.debug, "could not connect", ["address": .text("\(address)"), "reason": .text(outcome.words)])
    follow(.dialFailed(address))
  }

  /// Ends all sessions with a device.
  private func drop(_ dropped: DialPolicy.Drop) {
    let reason = dropped.reason == .surplus ? "surplus" : "turn"
    journal.note(.debug, "gives up a link", ["device": .device(dropped.device), "reason": .text(reason)])
    for id in table.sessions(of: dropped.device) {
      _ = send(.goodbye(.stopping), to: id)
      port.close(id, afterFlush: true)
    }
  }

  // MARK: Coming and going

  /// Takes a new connection into the table, and answers what may pass on it. Nil where there is no room, or nothing may:
  /// it is closed.
  func opened(_ link: OpenedLink, hasRoom: Bool, hash: HashFunction) -> Passage? {
    let dialled = link.dialTag.flatMap { table.endDial($0) }
    guard hasRoom, let passage = port.passage(of: link.session) else {
      port.close(link.session, afterFlush: true)
      dialEnded(dialled, hasRoom ? .linkClosed : .failed("this node has no room for one more session"))
      return nil
    }
    table[link.session] = LinkTable.Link(remote: link.remote, dialled: dialled, passage)
    if passage.isThin { port.keepShort(link.session) }
    if let dialled { follow(.identified(dialled, DeviceID.derived(from: link.peerKey, hash))) }
    return passage
  }

  /// Ends every session whose link lets something else pass than when it began, with all that is under way: a peer that is
  /// told to say less has said much already. The next one begins with what may pass then.
  func passagesMoved() {
    for (id, link) in table.links.sorted(by: { $0.key < $1.key }) where port.passage(of: id) != link.passage {
      journal.note(.info, "begins a session anew, since its link changed", ["address": .text(address(id))])
      table.noteMoved(id)
      port.close(id, afterFlush: false)
    }
    follow(.networkChanged)
  }

  /// Answers where this peer can be found again: the address dialled, or where it says that it listens. The inner nil:
  /// it cannot be dialled; the outer: there is nothing to remember.
  func authenticated(_ id: SessionID, _ device: DeviceID, listenPort: UInt16) -> String?? {
    guard let link = table[id] else { return nil }
    table.authenticate(id, device)
    port.authenticate(id)
    var address = link.remote
    if link.dialled == nil { address.port = listenPort }
    let isListening = link.dialled == nil && listenPort > 0
    follow(.connected(device, outgoing: link.dialled != nil, listening: isListening ? .socket(address) : nil))
    guard device != policy.thisDevice else { return nil }
    return .some(address.port > 0 ? port.text(of: address) : nil)
  }

  /// Admitted just now: the time limits of strangers end. It connects anew to speak as a member.
  func admitted(_ id: SessionID) { if table[id] != nil { port.authenticate(id) } }

  /// With how many devices the peer says to be linked.
  func counted(_ id: SessionID, _ count: Int) {
    if let device = table[id]?.device { follow(.counted(device, links: count)) }
  }

  /// Learns from the way in which a session ended whether the address that was dialled is worth dialling again.
  func refused(_ id: SessionID, _ goodbye: Goodbye) {
    guard let dialled = table[id]?.dialled else { return }
    switch goodbye {
    case .otherFleet: table.note(.otherFleet, at: dialled)
    case .notAMember: table.note(.notAMember, at: dialled)
    case .stopping, .duplicate, .protocolError, .versionUnknown, .ownConnection: return
    }
    follow(.dialRefused(dialled))
  }

  func close(_ id: SessionID) {
    if table[id] != nil { port.close(id, afterFlush: true) }
  }

  /// Takes a connection that has ended out of the table. False where it was not in there any more.
  func closed(_ id: SessionID, _ reason: String) -> Bool {
    guard let link = table[id] else { return false }
    table[id] = nil
    journal.note(
      .debug, "connection closed", ["address": .text(port.text(of: link.remote)), "reason": .text(reason)])
    if let dialled = link.dialled { table.note(ended: link, reason, at: dialled) }
    guard let device = link.device else {
      dialEnded(link.dialled)
      return true
    }
    if table.sessions(of: device).isEmpty { follow(.disconnected(device)) }
    return true
  }

  /// Ends every connection without sending what waits: what was said on them does not hold.
  func cutAll() {
    for (id, link) in table.links.sorted(by: { $0.key < $1.key }) {
      port.close(id, afterFlush: false)
      if let device = link.device { follow(.disconnected(device)) }
    }
    table.removeAll()
  }

  /// A dial has ended without a session: others may be dialled at once, and this address after its pause.
  private func dialEnded(_ address: PeerAddress?, _ outcome: DialOutcome? = nil) {
    guard let address else { return }
    if let outcome { table.note(outcome, at: address) }
    follow(.dialFailed(address))
  }

  func networkChanged() {
    port.closeStranded()
    follow(.networkChanged)
  }

  // MARK: Frames

  /// Sends a message, or holds it behind those that wait. True where the session must pause: too much waits for it.
  func send(_ message: Message, to id: SessionID) -> Bool {
    guard table[id] != nil else { return false }
    if case .pong(let nonce) = message, isUnread(id) {
      // What waits for the peer already tells it that this node lives; a pong has time until that is written.
      table.delayPong(nonce, to: id)
      return false
    }
    let frame = MessageCodec.encode(message)
    table.countSent(id, frame.count + port.frameOverheadByteCount)
    guard !table.mustHold(for: id) else { return hold(frame, id) }
    switch port.send(frame, on: id) {
    case .queued(let isLong):
      if isLong { boundQueues(of: id) }
      return isLong
    case .full: return hold(frame, id)
    case .closed: return false
    }
  }

  /// What a session should say at once: half of what should wait for it, so that the rest goes out meanwhile.
  func portionByteCount(of id: SessionID) -> Int { max(1, port.queueByteMark(of: id) / 2) }

  private func hold(_ frame: [UInt8], _ id: SessionID) -> Bool {
    switch table.hold(frame, for: id) {
    case .held: boundQueues(of: id)
    case .cutOff: cutOff(id)
    case .dropped: break
    }
    return true
  }

  private func cutOff(_ id: SessionID) {
    journal.note(.notice, "cut off a peer that reads nothing", ["address": .text(address(id))])
    port.close(id, afterFlush: false)
  }

  /// What may wait for one device on all its sessions: as much as for one session. An honest device has a second one only
  /// until the first is found dead.
  static let deviceQueueByteLimit = 16 * 1024 * 1024

  /// Of a device for which too much waits, the session with most is cut off.
  private func boundQueues(of id: SessionID) {
    guard let device = table[id]?.device else { return }
    let waiting = table.sessions(of: device).map { ($0, port.queuedByteCount(of: $0) + table.heldByteCount(of: $0)) }
    guard waiting.count > 1, waiting.reduce(0, { $0 + $1.1 }) > LinkDirector.deviceQueueByteLimit,
      let most = waiting.max(by: { ($0.1, $1.0) < ($1.1, $0.0) })
    else { return }
    table.cutOff(most.0)
    cutOff(most.0)
  }

  /// Sends what was held, as far as there is room. True where all of it has gone, and the session may go on.
  func drained(_ id: SessionID) -> Bool {
    table[id] != nil && table.releaseHeld(for: id) { port.send($0, on: id) }
  }

  // MARK: Peers that do not read

  /// More than one TLS record waits for a peer that does not read, or reads slower than it is written to.
  private static let unreadByteMark = 16 * 1024

  /// True where more waits for this peer than what is on its way to the kernel.
  private func isUnread(_ id: SessionID) -> Bool {
    table.mustHold(for: id) || port.queuedByteCount(of: id) > LinkDirector.unreadByteMark
  }

  /// Counts what a message of this peer made this node say to it while it does not read; at a limit, reading pauses.
  func noteAnswers(_ directives: [Mesh.Directive], to id: SessionID) {
    let count = directives.count { $0.isAnswer(to: id) }
    guard count > 0, table[id] != nil, isUnread(id) else { return }
    if table.addAnswers(count, to: id) { port.holdUp(id) }
  }

  /// Pauses reading as if the peer had used up its answers. False where it is paused already.
  func pauseReading(of id: SessionID) -> Bool {
    guard table.addAnswers(UnreadAnswers.limit, to: id) else { return false }
    port.holdUp(id)
    return true
  }

  /// No pause lasts longer than two ticks, whatever the peer does: so two nodes never wait for one another.
  func renewAnswers() {
    guard clock.now.millisecondsSince(answersRenewedAt) >= Mesh.tickMilliseconds else { return }
    answersRenewedAt = clock.now
    for id in table.owed {
      if table.renewAnswers(of: id) { port.letGo(id) }
      guard !isUnread(id), let ping = table.takePing(of: id) else { continue }
      _ = send(.pong(nonce: ping), to: id)
    }
  }

  func release(_ id: SessionID, byteCount: Int) {
    table.countReceived(id, byteCount + port.frameOverheadByteCount)
    port.release(id, byteCount: byteCount)
  }

  func noteClock(_ id: SessionID?, _ milliseconds: Int64) { table.noteClock(id, milliseconds) }

  /// What counts from now on. Where it has devices that were no members before, who did not take this node, or was not taken by it, is
  /// dialled again soon: a device that is let in again has a new key, at the same address.
  func adopt(_ authority: Authority) {
    port.adopt(authority)
    let before = self.authority
    self.authority = authority
    let refused = table.outcomes.filter { $0.value == .notAMember }.keys.sorted()
    guard !refused.isEmpty, authority.hasMembers(beyond: before) else { return }
    follow(.admitted(refused))
  }
}
