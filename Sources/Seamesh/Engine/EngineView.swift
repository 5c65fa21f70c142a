import Engine
import Identity
import Replication
import Storage
import Transport

/// How the engine does: one look at its memory.
struct EngineView: Sendable {
  let taken: MonotonicTime
  /// What the engine knows of it; the rest is the node's to fill in.
  private(set) var status: NodeStatus
  let peers: PeerView
  /// Sessions, with the changes that each peer is known to lack.
  let lags: [(session: SessionID, behind: Int64)]
  let failure: NodeError?
  let refusedJoins: Int
  let held: HeldWork
  let conduct: [ConductBook.Entry]
  let spenders: [Spender]
  let undeletable: Set<String>
  let ownKey: OwnKeyNotes
  /// Documents that do not read, and those that did not and do again.
  let damaged: [DamagedStatus]
  let mended: (documents: [String], count: Int)
  /// Runs of the log that are not as they were written, and those that came anew; and why a part of it could not be read over.
  let runs: (damaged: Int, mended: Int, unread: String?)

  /// On the engine's thread. `judgesWipe`: what would be lost is looked up, too, for which the store is read.
  init(_ engine: NodeEngine, judgesWipe: Bool) {
    let ledger = engine.state.mesh.ledger
    (taken, held) = (engine.state.clock.now, engine.heldWork())
    status = engine.status(held, judgesWipe: judgesWipe)
    peers = PeerView(engine)
    lags = engine.state.mesh.sessions.values.map { ($0.id, $0.lag(ledger).behind) }
    failure = engine.failure.map(NodeError.init(any:))
    (refusedJoins, conduct) = (engine.refusedJoins, engine.conduct)
    (spenders, undeletable, ownKey) = (engine.spenders(), engine.undeletable, engine.ownKey)
    damaged = engine.damagedDocuments()
    mended = (engine.state.quarantine.mended, engine.state.quarantine.mendedCount)
    runs = (engine.state.damagedRuns.leastCount, engine.state.damagedRuns.mendedCount, engine.state.scrub.failure)
  }

  /// With what commits have brought since.
  func counting(_ totals: LogTotals) -> EngineView {
    guard totals.changes != status.changes else { return self }
    var view = self
    (view.status.documents, view.status.changes) = (totals.documents, totals.changes)
    view.status.logBytes = totals.logBytes
    // Of what has come since nobody has judged it.
    view.status.lostIfWiped = nil
    return view
  }

  /// With what an earlier look tells of what would be lost; nil where something was written since.
  func judged(as earlier: EngineView) -> EngineView? {
    guard earlier.status.changes == status.changes else { return nil }
    var view = self
    view.status.lostIfWiped = earlier.status.lostIfWiped
    return view
  }

  var age: UInt64 { ElapsedClock.now().millisecondsSince(taken) }
}

extension NodeEngine {
  fileprivate func status(_ held: HeldWork, judgesWipe: Bool) -> NodeStatus {
    var status = NodeStatus()
    let member = state.mesh.authority.member(of: state.identity.device)
    status.fleetName = state.mesh.authority.fleetName?.string ?? ""
    status.user = member?.membership.user.string ?? ""
    status.label = member?.membership.label.string ?? ""
    status.replica = state.own.replica?.id.text
    status.documents = state.store.totals.documents
    status.changes = state.store.totals.changes
    status.logBytes = state.store.totals.logBytes
    status.readOnly = failure != nil
    for partition in state.mesh.partitions.values {
      for held in partition.log.held { status.held[held.reason.rawValue, default: 0] += 1 }
    }
    status.heldOfEnded = held.changes
    status.peersConnected = state.mesh.sessions.values.count { $0.phase == .live }
    if judgesWipe, state.mesh.partitions.count <= WipeLimits.statusPartitions {
      status.lostIfWiped = lostIfWiped(WipeRules())
    }
    return status
  }
}

/// Peers that are connected, those that were, and addresses at which somebody else may be.
struct PeerView: Sendable {
  private let connected: [PeerStatus]
  private let here: Set<DeviceID>
  /// Whom the node knows to have fallen silent since its start, without the addresses that the store remembers.
  private let silent: [(device: DeviceID, status: PeerStatus)]
  private let unreached: [(entry: DialPolicy.Entry, status: PeerStatus)]

  /// On the engine's thread.
  init(_ engine: NodeEngine) {
    let (mesh, sessions) = (engine.state.mesh, engine.state.mesh.sessions.values.sorted { $0.id < $1.id })
    connected = sessions.map(engine.status)
    let here = Set(sessions.lazy.map(\.device))
    self.here = here
    let gone = mesh.silent.all.filter { !here.contains($0.device) }
    let held = gone.isEmpty ? 0 : SilentPeers.changes(of: mesh.ledger)
    silent = gone.map { ($0.device, engine.status($0, held)) }
    unreached = engine.links.policy.entries.compactMap { entry in
      guard entry.state != .connected, entry.state != .thisNode else { return nil }
      return (entry, engine.status(entry))
    }
  }

  /// - Parameters:
  ///   - met: whom the store remembers.
  ///   - labels: memberships by device.
  func rows(metBefore met: [StoredPeer], _ labels: [DeviceID: Statement.Membership]) -> [PeerStatus] {
    let addresses = Dictionary(met.map { ($0.device, $0.addresses.first?.text ?? "") }) { first, _ in first }
    let gone = Set(silent.lazy.map(\.device))
    let earlier = met.filter { !here.contains($0.device) && !gone.contains($0.device) }
    let known = here.union(gone).union(earlier.lazy.map(\.device))
    let left = unreached.filter { entry, status in
      guard let device = entry.device else { return true }
      // Other addresses of a device that is shown are no news, unless it is found at one where nobody answers.
      let isNews = entry.state == .unreachable && status.isFound
      return isNews ? !here.contains(device) : !known.contains(device)
    }
    return connected
      + silent.map { device, status in
        var status = status
        status.address = addresses[device] ?? ""
        return status
      } + earlier.compactMap { stored in labels[stored.device].map { PeerView.status(stored, $0) } }
      + left.map { entry, status in
        var status = status
        let member = entry.device.flatMap { labels[$0] }
        (status.label, status.user) = (member?.label.string ?? "", member?.user.string ?? "")
        return status
      }
  }

  /// It was met before this start: how far it is behind is not known.
  private static func status(_ stored: StoredPeer, _ member: Statement.Membership) -> PeerStatus {
    var status = PeerStatus()
    (status.device, status.label, status.user) = (stored.device.text, member.label.string, member.user.string)
    (status.address, status.state) = (stored.addresses.first?.text ?? "", .silent)
    status.lastContactMilliseconds = max(0, WallClock.milliseconds - stored.lastContact)
    (status.behind, status.ahead) = (nil, nil)
    return status
  }
}

extension NodeEngine {
  fileprivate func status(_ entry: DialPolicy.Entry) -> PeerStatus {
    var status = PeerStatus()
    status.device = entry.device?.text ?? ""
    (status.address, status.isFound) = (entry.address.description, entry.instance != nil)
    // Nobody has said what is held there.
    (status.behind, status.ahead) = (nil, nil)
    let outcome = links.table.outcomes[entry.address]
    status.detail = outcome?.words ?? ""
    status.link =
      switch outcome {
      case .linkClosed: .closed
      case .linkMoved: .moved
      case .ended: .ended
      case .failed, .otherFleet, .notAMember, nil: nil
      }
    status.state =
      switch entry.state {
      case .dialling: .connecting
      case .refused: outcome == .otherFleet ? .otherFleet : .refused
      case .unreachable: .unreachable
      case .idle, .connected, .thisNode: .seen
      }
    return status
  }

  fileprivate func status(_ peer: SilentPeers.Peer, _ held: Int64) -> PeerStatus {
    var status = PeerStatus()
    let member = state.mesh.authority.member(of: peer.key)
    (status.device, status.state) = (peer.device.text, .silent)
    status.label = member?.membership.label.string ?? ""
    status.user = member?.membership.user.string ?? ""
    if state.mesh.authority.isEnded(peer.key) { status.detail = "it is no member any more" }
    status.lastContactMilliseconds = Int64(clamping: state.clock.now.millisecondsSince(peer.lastHeard))
    (status.behind, status.ahead) = (peer.behind(held), peer.ahead)
    return status
  }

  fileprivate func status(_ session: PeerSession) -> PeerStatus {
    var status = PeerStatus()
    let member = state.mesh.authority.member(of: session.peer)
    status.device = session.device.text
    status.label = member?.membership.label.string ?? ""
    status.user = member?.membership.user.string ?? ""
    status.address = links.address(session.id)
    status.state = session.phase == .live ? .connected : .connecting
    status.clockDifference = links.table[session.id]?.clockDifference
    status.detail = status.clockDifference.map(ClockDifference.sentence) ?? ""
    status.roundTripMilliseconds = session.pulse.roundTripMilliseconds.map { Double($0) }
    status.lastContactMilliseconds = Int64(clamping: state.clock.now.millisecondsSince(session.pulse.lastHeard))
    (status.behind, status.ahead) = session.lag(state.mesh.ledger)
    status.sentBytes = links.table[session.id]?.sentByteCount ?? 0
    status.receivedBytes = links.table[session.id]?.receivedByteCount ?? 0
    return status
  }
}
