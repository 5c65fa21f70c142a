// What one device may make a node hold, beside what it may write.
extension Mesh {
  /// Sessions of one device: a process has one, and a restart or a copy of its directory may bring another before the first
  /// is found dead.
  package static let sessionsPerDevice = 3

  /// The newest stays: the oldest of a device may be what is left of a connection that nobody has anymore.
  mutating func closeSurplus(besides id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let others = sessions.values.filter { $0.device == session.device && $0.id != id }
      .sorted { ($0.openedAt, $0.id) < ($1.openedAt, $1.id) }
    for other in others.dropLast(Mesh.sessionsPerDevice - 1) {
      fail(other.id, .duplicate, "more than \(Mesh.sessionsPerDevice) sessions of one device", &step)
    }
  }

  // MARK: Vectors

  /// Of an entry a peer says that it holds more; what it holds is not here at all.
  func isAwaited(_ replica: ReplicaID, _ partition: PartitionID) -> Bool {
    ledger.partitions[partition]?.log.received[replica] == nil
  }

  /// As much of a vector as there is room for, of a device.
  mutating func boundedVector(
    _ vector: VersionVector, _ id: SessionID, _ partition: PartitionID, _ now: MonotonicTime
  ) -> VersionVector {
    guard let session = sessions[id] else { return vector }
    let known = session.live?.streams[partition]?.known
    let fresh = vector.entries.keys.filter { known?[$0] == nil && isAwaited($0, partition) }
    guard !fresh.isEmpty else { return vector }
    sessions[id]?.live?.awaited.count += fresh.count
    guard awaitedChains(of: session.device) > AwaitedChains.limit else { return vector }
    // What came since may be here by now. Counting costs as much as there is room, so that is not done for each message.
    if let countedAt = session.live?.awaited.countedAt,
      now.millisecondsSince(countedAt) >= configuration.catchUpSilenceMilliseconds
    {
      recountAwaitedChains(of: session.device, now)
      sessions[id]?.live?.awaited.count += fresh.count
    }
    guard awaitedChains(of: session.device) > AwaitedChains.limit else { return vector }
    sessions[id]?.live?.awaited.count -= fresh.count
    let dropped = Set(fresh)
    return VersionVector(vector.entries.filter { !dropped.contains($0.key) })
  }

  private func awaitedChains(of device: DeviceID) -> Int {
    sessions.values.reduce(0) { $0 + ($1.device == device ? $1.live?.awaited.count ?? 0 : 0) }
  }

  private mutating func recountAwaitedChains(of device: DeviceID, _ now: MonotonicTime) {
    for id in sessions.keys where sessions[id]?.device == device {
      sessions[id]?.live?.awaited.countedAt = now
      let count = (sessions[id]?.live?.streams ?? [:]).reduce(0) { count, stream in
        count + stream.value.known.entries.keys.count { isAwaited($0, stream.key) }
      }
      sessions[id]?.live?.awaited.count = count
    }
  }

  // MARK: Interests

  /// What all sessions of one device want counts together, as much as one may: the oldest give way. A copy of a device, or a
  /// connection that is not known to be dead yet, wants the same.
  mutating func trimInterests(besides id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    var items = session.peerInterest?.itemCount ?? 0
    let others = sessions.values.filter { $0.device == session.device && $0.id != id }
    for other in others.sorted(by: { ($1.openedAt, $1.id) < ($0.openedAt, $0.id) }) {
      items += other.peerInterest?.itemCount ?? 0
      guard items > Interest.itemLimit else { continue }
      fail(other.id, .duplicate, "sessions of one device that want more than one may", &step)
    }
  }

  // MARK: Evidence that waits

  /// What runs that came ahead may take in memory, on all sessions of one device: bytes, and their contexts' entries.
  static let postponedByteLimit = 4 * 1024 * 1024

  func postponedByteCount(of device: DeviceID) -> Int {
    sessions.values.reduce(0) { $0 + ($1.device == device ? $1.live?.postponedByteCount ?? 0 : 0) }
  }
}

extension Interest {
  var itemCount: Int { partitions.count + prefixes.count }
}
