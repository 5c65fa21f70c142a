import Engine
import Glibc
import Identity
import Replication
import Storage
import Transport

extension Node {
  package static let version = "0.1.0"

  package func status() throws(NodeError) -> NodeStatus {
    var status = try onEngine { $0.status() }
    status.version = Node.version
    status.fleet = files.fleet.text
    status.device = files.device.text
    status.directory = files.directory.path
    status.uptimeMilliseconds = Int64(clamping: uptimeMilliseconds)
    status.databaseBytes = readers.fileBytes
    status.diskFreeBytes = (try? DiskSpace.of(files.directory.path).availableBytes) ?? 0
    status.discovery = discovery.state.sentence
    status.listen = endpoints.listen.map(\.description)
    status.forwarding = forwardingStatus
    status.links = try links()
    status.lostIfWiped = try lostIfWiped()
    return status
  }

  var uptimeMilliseconds: UInt64 {
    MonotonicTime(milliseconds: ElapsedClock.now()).millisecondsSince(startedAt)
  }

  package func peers() throws(NodeError) -> [PeerStatus] {
    let met = try reading { try $0.peers() }
    return try onEngine { $0.peerStatus(metBefore: met) }
  }

  package func devices() throws(NodeError) -> [DeviceStatus] {
    let desk = try permissionDesk()
    return try onEngine { $0.deviceStatus() }.map { key, device in
      var status = device
      status.endedBy = desk.ends(of: key)
      return status
    }
  }

  package func partitions(withDigests: Bool) throws(NodeError) -> [PartitionStatus] {
    let rows = try onEngine { $0.partitionStatus() }
    guard withDigests else { return rows.map(\.status) }
    return digests.fill(rows, of: self, within: limits.digestWaitMilliseconds)
  }

  /// Where others on the network may find this node; loopback only where there is nothing else.
  static func reachableAddresses(_ listen: [SocketAddress]) -> [Text] {
    guard let port = listen.first?.port else { return [] }
    let bound = listen.filter { !$0.host.isUnspecified }
    guard bound.isEmpty else { return bound.prefix(JoinCode.addressLimit).map { Text($0.description) } }
    let hosts = NetworkInterfaces.addresses()
    let preferred = hosts.filter { !$0.isLoopback && !$0.isLinkLocal }
    let chosen = preferred.isEmpty ? hosts.filter(\.isLoopback) : preferred
    return chosen.prefix(JoinCode.addressLimit).map { Text(SocketAddress($0, port: port).description) }
  }

  package func backup(to path: String, progress: (Int, Int) -> Void) throws(NodeError) {
    do throws(StoreError) {
      try StoreBackup.write(store: files.directory.file(Store.fileName), to: path, progress: progress)
    } catch {
      throw Node.backupFailure(error, path)
    }
  }

  /// What is wrong with the place of the copy is not this node's failure.
  private static func backupFailure(_ error: StoreError, _ path: String) -> NodeError {
    switch error {
    case .system(_, _, let code):
      NodeError(.unprocessable, "a backup cannot be written to \(path): \(String(cString: strerror(code)))")
    case .readOnly: NodeError(.notPermitted, "a backup cannot be written to \(path): not permitted")
    case .diskFull: NodeError(.diskFull, "there is no room for a backup at \(path)")
    default: NodeError(error)
    }
  }

  package func metrics() throws(NodeError) -> String {
    let status = try status()
    let peers = try peers()
    var lines: [String] = []
    func gauge(_ name: String, _ help: String, _ value: Int64) {
      lines += ["# HELP seamesh_\(name) \(help)", "# TYPE seamesh_\(name) gauge", "seamesh_\(name) \(value)"]
    }
    gauge("documents", "Living documents.", status.documents)
    gauge("changes", "Changes in the log.", status.changes)
    gauge("log_bytes", "Bytes of the log.", status.logBytes)
    gauge("database_bytes", "Bytes of the database file.", status.databaseBytes)
    gauge("disk_free_bytes", "Free bytes where the data directory lies.", status.diskFreeBytes)
    gauge("peers_connected", "Peers with a session.", Int64(status.peersConnected))
    gauge(
      "changes_behind", "Changes that connected peers are known to lack.",
      peers.reduce(0) { $0 + ($1.state == "connected" ? $1.behind ?? 0 : 0) })
    gauge("changes_held", "Changes kept but not counted.", status.held.values.reduce(0, +))
    gauge("uptime_seconds", "Seconds since the start.", status.uptimeMilliseconds / 1_000)
    lines += status.forwarding?.metrics ?? []
    lines += LinkReport.metrics(status.links)
    return lines.joined(separator: "\n") + "\n"
  }
}

struct PartitionRow: Sendable {
  var status: PartitionStatus
  let id: PartitionID
  let name: PartitionName
  let accepted: VersionVector
}

extension PartitionStatus {
  static func shown(_ vector: VersionVector) -> [(replica: String, sequence: UInt64, tip: String)] {
    vector.sorted.map { ($0.replica.text, $0.position.sequence, Hex.encode($0.position.tip.bytes)) }
  }
}

extension NodeEngine {
  /// What the engine knows; the rest is the node's to fill in.
  fileprivate func status() -> NodeStatus {
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
    status.heldOfEnded = heldWork().changes
    status.peersConnected = state.mesh.sessions.values.count { $0.phase == .live }
    return status
  }

  func deviceStatus() -> [(PublicKey, DeviceStatus)] {
    state.mesh.authority.allMembers.map { member in
      var status = DeviceStatus()
      status.device = DeviceID(member.device).text
      status.user = member.membership.user.string
      status.label = member.membership.label.string
      status.role = member.membership.role.string
      status.profile = member.membership.profile
      status.replicas = state.mesh.authority.replicas(of: member.device).map(\.text)
      status.isSelf = member.device == state.identity.device
      return (member.device, status)
    }
  }

  func partitionStatus() -> [PartitionRow] {
    let stored = Dictionary(attempt([]) { try state.store.logPartitions() }.map { ($0.id, $0.totals) }) { a, _ in a }
    return state.mesh.partitions.values.sorted { $0.name < $1.name }.map { partition in
      var status = PartitionStatus()
      status.name = partition.name.text.string
      status.subscribed = state.mesh.interest.wants(partition.id, name: partition.name)
      status.documents = stored[partition.id]?.documents ?? 0
      status.changes = stored[partition.id]?.changes ?? 0
      status.heldChanges = Int64(partition.log.held.count)
      status.vector = PartitionStatus.shown(partition.log.accepted)
      return PartitionRow(
        status: status, id: partition.id, name: partition.name, accepted: partition.log.accepted)
    }
  }

  /// Those that are connected, those that were, and addresses at which somebody else may be.
  ///
  /// - Parameter met: whom the store remembers.
  func peerStatus(metBefore met: [StoredPeer] = []) -> [PeerStatus] {
    let connected = state.mesh.sessions.values.sorted { $0.id < $1.id }
    let here = Set(connected.lazy.map(\.device))
    let silent = state.mesh.silent.all.filter { !here.contains($0.device) }
    let addresses = Dictionary(met.map { ($0.device, $0.addresses.first?.text ?? "") }) { first, _ in first }
    let held = silent.isEmpty ? 0 : SilentPeers.changes(of: state.mesh.ledger)
    let met = met.filter { stored in !here.contains(stored.device) && !silent.contains { $0.device == stored.device } }
    let known = here.union(silent.lazy.map(\.device)).union(met.lazy.map(\.device))
    let unreached = links.policy.entries.filter { entry in
      guard entry.state != .connected, entry.state != .thisNode else { return false }
      // Other addresses of a device that is shown are no news, unless nobody answers at one where it was.
      return !(entry.device.map(entry.state == .unreachable ? here.contains : known.contains) ?? false)
    }
    let members = met.isEmpty ? [] : state.mesh.authority.allMembers.map { (DeviceID($0.device), $0.membership) }
    let labels = Dictionary(members) { _, newer in newer }
    let earlier = met.compactMap { stored in labels[stored.device].map { status(stored, $0) } }
    return connected.map(status) + silent.map { status($0, at: addresses[$0.device] ?? "", held) } + earlier
      + unreached.map(status)
  }

  private func status(_ entry: DialPolicy.Entry) -> PeerStatus {
    var status = PeerStatus()
    status.device = entry.device?.text ?? ""
    status.address = entry.address.description
    status.detail = links.table.outcomes[entry.address] ?? ""
    status.state =
      switch entry.state {
      case .dialling: "connecting"
      case .refused: status.detail == "\(Goodbye.otherFleet)" ? "other fleet" : "refused"
      case .unreachable: "unreachable"
      case .idle, .connected, .thisNode: "seen"
      }
    return status
  }

  private func status(_ peer: SilentPeers.Peer, at address: String, _ held: Int64) -> PeerStatus {
    var status = PeerStatus()
    let member = state.mesh.authority.member(of: peer.key)
    (status.device, status.address, status.state) = (peer.device.text, address, "silent")
    status.label = member?.membership.label.string ?? ""
    status.user = member?.membership.user.string ?? ""
    status.lastContactMilliseconds = Int64(clamping: state.clock.now.millisecondsSince(peer.lastHeard))
    (status.behind, status.ahead) = (peer.behind(held), peer.ahead)
    return status
  }

  /// It was met before this start: how far it is behind is not known.
  private func status(_ stored: StoredPeer, _ member: Statement.Membership) -> PeerStatus {
    var status = PeerStatus()
    (status.device, status.label, status.user) = (stored.device.text, member.label.string, member.user.string)
    (status.address, status.state) = (stored.addresses.first?.text ?? "", "silent")
    status.lastContactMilliseconds = max(0, state.clock.wallMilliseconds - stored.lastContact)
    (status.behind, status.ahead) = (nil, nil)
    return status
  }

  private func status(_ session: PeerSession) -> PeerStatus {
    var status = PeerStatus()
    let member = state.mesh.authority.member(of: session.peer)
    status.device = session.device.text
    status.label = member?.membership.label.string ?? ""
    status.user = member?.membership.user.string ?? ""
    status.address = links.address(session.id)
    status.state = session.phase == .live ? "connected" : "connecting"
    if let difference = links.table[session.id]?.clockDifference {
      status.detail = "its clock differs by \(difference / 1_000) s"
    }
    status.roundTripMilliseconds = session.pulse.roundTripMilliseconds.map(Double.init)
    status.lastContactMilliseconds = Int64(clamping: state.clock.now.millisecondsSince(session.pulse.lastHeard))
    (status.behind, status.ahead) = session.lag(state.mesh.ledger)
    status.sentBytes = links.table[session.id]?.sentByteCount ?? 0
    status.receivedBytes = links.table[session.id]?.receivedByteCount ?? 0
    return status
  }
}
