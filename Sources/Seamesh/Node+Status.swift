import Engine
import Glibc
import Identity
import Replication
import Storage
import Transport

extension Node {
  package static let version = "0.1.0"

  package func status() throws(NodeError) -> NodeStatus { try status(engine.view(judgesWipe: true)) }

  private func status(_ view: EngineView) throws(NodeError) -> NodeStatus {
    var status = view.status
    status.ageMilliseconds = Int64(clamping: view.age)
    status.version = Node.version
    status.fleet = files.fleet.text
    status.device = files.device.text
    status.directory = files.directory.path
    status.uptimeMilliseconds = Int64(clamping: uptimeMilliseconds)
    status.databaseBytes = documents.readers.fileBytes
    status.diskFreeBytes = (try? DiskSpace.of(files.directory.path).availableBytes) ?? 0
    status.discovery = discovery.state.sentence
    status.listen = endpoints.listen.map(\.description)
    status.forwarding = forwarding.status
    status.links = keeper.reports(view)
    status.setAside = (try? FilesSetAside(files.directory.path).paths) ?? []
    status.endedBy = ownEnds
    let conflicts = knownConflicts(for: .read)
    if !conflicts.isEmpty {
      status.conflicts = ConflictCount(openPartitions: conflicts.count(where: \.areOpen), partitions: conflicts.count)
    }
    return status
  }

  /// What ended this device, also while the engine is busy.
  private var ownEnds: [RightStatus] {
    let (authority, own) = (authority.now, files.deviceKey.publicKey)
    guard authority.isEnded(own) else { return [] }
    let arrivals = (try? statementArrivals()) ?? [:]
    return PermissionDesk(authority: authority, device: own, arrivals: arrivals).ends(of: own)
  }

  /// Of the partitions in which this device may do so much.
  private func knownConflicts(for level: AccessLevel) -> [StateDigests.KnownConflicts] {
    digests.knownConflicts.filter { authority.now.level(of: files.deviceKey.publicKey, in: $0.partition) >= level }
  }

  var uptimeMilliseconds: UInt64 {
    ElapsedClock.now().millisecondsSince(startedAt)
  }

  package func peers() throws(NodeError) -> [PeerStatus] { try peers(engine.view()) }

  private func peers(_ view: EngineView) throws(NodeError) -> [PeerStatus] {
    let authority = authority.now
    let members = authority.allMembers.map { (DeviceID($0.device), $0.membership) }
    let rows = view.peers.rows(
      metBefore: try documents.reading { try $0.peers() }, Dictionary(members) { _, newer in newer })
    let ended = Set(members.lazy.map(\.1.device).filter(authority.isEnded).map { DeviceID($0).text })
    return rows.map { row in
      var row = row
      row.isEnded = ended.contains(row.device)
      return row
    }
  }

  package func devices() throws(NodeError) -> [DeviceStatus] {
    let desk = try permissionDesk()
    return try engine.ask { $0.deviceStatus() }.map { key, device in
      var status = device
      status.endedBy = desk.ends(of: key)
      return status
    }
  }

  package func partitions(withDigests: Bool) throws(NodeError) -> [PartitionStatus] {
    let rows = try engine.ask { $0.partitionStatus() }
    guard withDigests else { return rows.map(\.status) }
    return digests.fill(rows, within: documents.limits.digestWaitMilliseconds)
  }

  /// Behind whoever asks, where it was summed up before.
  func renewDigest(of partition: PartitionName) {
    let id = documents.id(of: partition)
    guard digests.hasSummedUp(id),
      let accepted = try? engine.ask({ $0.state.mesh.partitions[id]?.log.accepted })
    else { return }
    digests.renew(PartitionRow(status: PartitionStatus(), id: id, name: partition, accepted: accepted))
  }

  package func doctor() throws(NodeError) -> [DoctorFinding] {
    let view = try engine.view(judgesWipe: true)
    return Doctor(
      view: view, discovery: discovery.state, links: keeper.reports(view), forwarding: forwarding.status,
      conflicts: knownConflicts(for: .write).filter(\.areOpen).map(\.partition.text.string).sorted(),
      history: history, figures: gauges.figures, descriptors: descriptors, directory: files.directory.path,
      uptimeMilliseconds: uptimeMilliseconds
    ).findings
  }

  package func links() throws(NodeError) -> [LinkReport] { keeper.reports(try engine.view()) }

  package func useLinks(_ name: Text) throws(NodeError) { try keeper.use(name) }

  // MARK: Who holds what

  package func receipts(
    _ partition: PartitionName, _ collection: Text, id: Value, asking: Bool
  ) throws(NodeError) -> ReceiptReport {
    try receiptDesk.receipts(partition, collection, id: id, asking: asking)
  }

  package func receipts(_ partition: PartitionName, asking: Bool) throws(NodeError) -> ReceiptReport {
    try receiptDesk.receipts(partition, asking: asking)
  }

  package func watchReceipts(_ place: ReceiptPlace, asking: Bool) throws(NodeError) -> any ReceiptSubscription {
    try receiptDesk.watch(place, asking: asking, for: self)
  }

  private var receiptDesk: ReceiptDesk { ReceiptDesk(documents, feed) }

  /// Whether everything that is here is known to be elsewhere. `asking`: peers in reach are asked first what they hold of what
  /// would be lost, for a moment.
  package func safeToWipe(_ rules: WipeRules, asking: Bool) throws(NodeError) -> WipeReport {
    try WipeDesk(engine: engine, files: files, authority: authority).report(rules, asking: asking)
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
    let view = try engine.view()
    let (status, peers) = (try status(view), try peers(view))
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
      peers.reduce(0) { $0 + ($1.state == .connected ? $1.behind ?? 0 : 0) })
    gauge("changes_held", "Changes kept but not counted.", status.held.values.reduce(0, +))
    gauge("uptime_seconds", "Seconds since the start.", status.uptimeMilliseconds / 1_000)
    if let conflicts = status.conflicts {
      gauge(
        "partitions_with_conflicts", "Partitions in which conflicts waited for a decision when they were summed up.",
        Int64(conflicts.openPartitions))
    }
    lines += gauges.figures.metrics
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
  func deviceStatus() -> [(PublicKey, DeviceStatus)] {
    state.mesh.authority.allMembers.map { member in
      var status = DeviceStatus()
      status.device = DeviceID(member.device).text
      status.user = member.membership.user.string
      status.label = member.membership.label.string
      status.role = state.mesh.authority.role(of: member.device).string
      status.roles = state.mesh.authority.roles(of: member.device).map(\.string)
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
}
