import Replication
import Storage
import Transport
import Wire

extension NodeEngine {
  // MARK: Coming and going

  func opened(_ connection: OpenedConnection) {
    let id = SessionID(rawValue: connection.id.number)
    var dialled: PeerAddress?
    if case .dialled(let tag) = connection.origin { dialled = links.endDial(tag) }
    guard mesh.sessions.count < mesh.configuration.sessionLimit, failure == nil else {
      transport.close(connection.id)
      return dialEnded(dialled)
    }
    links[id] = LinkTable.Link(connection: connection.id, remote: connection.remote, dialled: dialled)
    let device = DeviceID.derived(from: connection.peerKey, mesh.cryptography.hash)
    if let dialled { dial(dialPolicy.handle(.identified(dialled, device), now: clock, using: &random)) }
    deliver(.opened(id, isDialer: dialled != nil, peer: connection.peerKey, exporter: connection.exporter))
  }

  func authenticated(_ id: SessionID, _ device: DeviceID, _ hello: Hello) {
    guard let link = links[id] else { return }
    links[id]?.device = device
    links[id]?.listenPort = hello.listenPort
    transport.authenticate(link.connection)
    if let dialled = link.dialled { links.forgetOutcome(at: dialled) }
    dial(dialPolicy.handle(.connected(device, outgoing: link.dialled != nil), now: clock, using: &random))
    remember(device, link, hello)
  }

  /// Where to find this peer again: the address dialled, or where it says that it listens.
  private func remember(_ device: DeviceID, _ link: LinkTable.Link, _ hello: Hello) {
    guard device != files.device else { return }
    var address = link.remote
    if link.dialled == nil { address.port = hello.listenPort }
    let text = address.port > 0 ? address.description : nil
    pending.contacts.append((device, text))
  }

  func close(_ id: SessionID, _ goodbye: Goodbye) {
    guard let link = links[id] else { return }
    if let dialled = link.dialled {
      switch goodbye {
      case .otherFleet, .notAMember:
        links.note("\(goodbye)", at: dialled)
        dial(dialPolicy.handle(.dialRefused(dialled), now: clock, using: &random))
      case .stopping, .duplicate, .protocolError, .versionUnknown, .ownConnection: break
      }
    }
    emit(.close(id))
  }

  func closed(_ connection: ConnectionID, _ reason: CloseReason) {
    let id = SessionID(rawValue: connection.number)
    guard let link = links[id] else { return }
    links[id] = nil
    deliver(.closed(id))
    log.debug("connection closed", ["address": link.remote.description, "reason": "\(reason)"])
    guard let device = link.device else { return dialEnded(link.dialled) }
    guard !links.links.values.contains(where: { $0.device == device }) else { return }
    dial(dialPolicy.handle(.disconnected(device), now: clock, using: &random))
  }

  /// Without a session: others may be dialled at once, and this address after its pause.
  private func dialEnded(_ address: PeerAddress?) {
    if let address { dial(dialPolicy.handle(.dialFailed(address), now: clock, using: &random)) }
  }

  /// To make room for others.
  private func drop(_ device: DeviceID) {
    for (id, link) in links.links where link.device == device {
      send(.goodbye(.stopping), to: id)
      transport.close(link.connection)
    }
  }

  func violated(_ connection: ConnectionID, _ reason: String) {
    let id = SessionID(rawValue: connection.number)
    log.notice("a peer broke the protocol", ["address": links.address(id), "reason": reason])
    deliver(.violated(id, reason))
  }

  // MARK: Sending

  func send(_ message: Message, to id: SessionID) {
    guard let link = links[id] else { return }
    if case .pong(let nonce) = message, isUnread(id, link.connection) { return delayPong(nonce, to: id) }
    let frame = MessageCodec.encode(message)
    links[id]?.sentByteCount += Int64(frame.count + SecureTransport.frameLengthByteCount)
    guard !links.mustHold(for: id) else { return hold(frame, id) }
    switch transport.send(link.connection, frame) {
    case .queued:
      let queued = transport.queuedBytes(of: link.connection) ?? 0
      if queued > NodeEngine.pauseByteMark { mesh.pause(id) }
    case .full: hold(frame, id)
    case .closed: break
    }
  }

  /// Above this the mesh stops loading runs for the session; the transport tells when there is room again.
  static let pauseByteMark = 2 * 1024 * 1024

  private func hold(_ frame: [UInt8], _ id: SessionID) {
    mesh.pause(id)
    guard links.hold(frame, for: id) == .cutOff, let link = links[id] else { return }
    log.notice("cut off a peer that reads nothing", ["address": link.remote.description])
    transport.close(link.connection, afterFlush: false)
  }

  func drained(_ connection: ConnectionID) {
    let id = SessionID(rawValue: connection.number)
    guard links[id] != nil, links.releaseHeld(for: id, { transport.send(connection, $0) }) else { return }
    deliver(.writable(id))
  }

  // MARK: Receiving

  func receive(_ batch: RunBatch, _ runs: [IncomingRun], from connection: ConnectionID) {
    let id = SessionID(rawValue: connection.number)
    do {
      let awaited = runs.reduce(0) { $0 + (($1.content as? ArrivedContent)?.open?.awaitedPayload?.byteCount ?? 0) }
      guard awaited <= NodeEngine.awaitedByteLimit else {
        throw NodeError(.tooLarge, "runs of one message with \(awaited) bytes of payloads apart from them")
      }
      deliver(.receivedRuns(id, batch, try runs.map { try checked($0, batch.name) }))
    } catch {
      violated(connection, "\(error)")
    }
  }

  /// Of all payloads that travelled apart from the runs of one message, which name them in a hundred bytes each: four of
  /// the largest are in memory together. A sender closes its batch before each.
  static let awaitedByteLimit = 16 * 1024 * 1024

  /// The IO thread may have known fewer statements than are here now.
  private func checked(_ run: IncomingRun, _ partition: PartitionName) throws -> IncomingRun {
    guard var content = run.content as? ArrivedContent, let open = content.open else { return run }
    let known =
      run.signer == nil ? try IncomingRun(open.run, context: run.context, in: partition, mesh.authority) : run
    guard let awaited = open.awaitedPayload else { return known }
    do {
      try content.attach(try arrived(awaited.hash, awaited.byteCount))
    } catch {
      // Pieces may stem from another peer than the run: none of them is trusted any more, and all are asked for anew.
      try store.write(.full) { try $0.removePieces(of: awaited.hash) }
      refreshStaged()
      throw error
    }
    return known.with(content, elementDots: content.open?.elementDots ?? known.elementDots)
  }

  /// A payload that travelled ahead of its run.
  private func arrived(_ hash: Digest, _ byteCount: Int) throws -> [UInt8] {
    commit()
    if let known = try store.largePayload(hash) { return known }
    let payload = try store.stagedPayload(hash, byteLimit: byteCount)
    guard payload.count == byteCount else { throw NodeError(.failed, "a run whose payload did not come before it") }
    return payload
  }

  func release(_ connection: ConnectionID, _ byteCount: Int) {
    links[SessionID(rawValue: connection.number)]?.receivedByteCount +=
      Int64(byteCount + SecureTransport.frameLengthByteCount)
    if intake.release(connection, byteCount) { transport.resumeReading(connection) }
  }

  // MARK: Dialling

  func dial(_ addresses: [PeerAddress]) {
    for address in addresses { transport.dial(address, tag: links.beginDial(address)) }
    while let device = dialPolicy.takeDrop() { drop(device) }
  }

  func dialFailed(_ tag: UInt64, _ reason: DialFailure) {
    guard let address = links.endDial(tag) else { return }
    links.note("\(reason)", at: address)
    log.debug("could not connect", ["address": address.description, "reason": "\(reason)"])
    dial(dialPolicy.handle(.dialFailed(address), now: clock, using: &random))
  }

  func found(_ instance: Text, _ addresses: [SocketAddress], _ tagMatches: Bool) {
    dial(
      dialPolicy.handle(
        .found(instance: instance, addresses: addresses, tagMatches: tagMatches), now: clock, using: &random))
  }
}
