/// One device's share of a payload: the pieces of several devices never mix, so that none spoils what another sends.
package struct StagedKey: Hashable, Comparable, Sendable {
  package let device: DeviceID
  package let partition: PartitionID
  package let hash: Digest

  package init(device: DeviceID, partition: PartitionID, hash: Digest) {
    (self.device, self.partition, self.hash) = (device, partition, hash)
  }

  package static func < (a: StagedKey, b: StagedKey) -> Bool {
    (a.partition.digest, a.hash, a.device.digest) < (b.partition.digest, b.hash, b.device.digest)
  }
}

/// What has come so far: the first bytes of a payload, from one device.
package struct StagedShare: Hashable, Sendable {
  package let key: StagedKey
  package let total: UInt64
  package var byteCount: UInt64
  /// All of it, and its hash was found to be what the key says.
  package var isWhole: Bool

  package init(_ key: StagedKey, total: UInt64, byteCount: UInt64 = 0, isWhole: Bool = false) {
    (self.key, self.total, self.byteCount, self.isWhole) = (key, total, byteCount, isWhole)
  }
}

/// A table of all payloads of which pieces lie on this node's disk, and the bounds of it.
package struct StagedPayloads: Sendable {
  /// Bytes from one device, four of the largest payloads: whoever sends one after the other needs one at a time.
  package static let deviceByteLimit = 16 * 1024 * 1024
  /// Bytes from all of them.
  package static let byteLimit = 256 * 1024 * 1024

  private var shares: [PartitionID: [Digest: [DeviceID: StagedShare]]] = [:]
  /// The sessions that shares came on from their first byte, since the start of this process.
  private var sessions: [StagedKey: SessionID] = [:]
  private var byteCounts: [DeviceID: Int] = [:]
  private var byteCount = 0

  package init(_ shares: [StagedShare] = []) { for share in shares { put(share) } }

  package var all: [StagedShare] {
    shares.values.flatMap { $0.values.flatMap(\.values) }.sorted { $0.key < $1.key }
  }

  package subscript(key: StagedKey) -> StagedShare? { shares[key.partition]?[key.hash]?[key.device] }

  /// - Parameter session: that all of it came on; nil where it came on several, or is from an earlier process.
  package mutating func put(_ share: StagedShare, from session: SessionID? = nil) {
    remove(share.key)
    sessions[share.key] = session
    shares[share.key.partition, default: [:]][share.key.hash, default: [:]][share.key.device] = share
    count(Int(share.byteCount), share.key.device)
  }

  /// Whether all that is here of it came on that session.
  package func isAll(of key: StagedKey, from session: SessionID) -> Bool {
    self[key] == nil || sessions[key] == session
  }

  package mutating func remove(_ key: StagedKey) {
    sessions[key] = nil
    guard let share = shares[key.partition]?[key.hash]?.removeValue(forKey: key.device) else { return }
    if shares[key.partition]?[key.hash]?.isEmpty == true { shares[key.partition]?[key.hash] = nil }
    if shares[key.partition]?.isEmpty == true { shares[key.partition] = nil }
    count(-Int(share.byteCount), key.device)
  }

  private mutating func count(_ change: Int, _ device: DeviceID) {
    byteCount += change
    byteCounts[device, default: 0] += change
    if byteCounts[device] == 0 { byteCounts[device] = nil }
  }

  /// Of one payload, for whatever partition and from whomever.
  package func keys(of hash: Digest) -> [StagedKey] {
    shares.values.flatMap { ($0[hash] ?? [:]).values.map(\.key) }.sorted()
  }

  /// A share of the payload that is known to be what it says, whoever sent it.
  package func whole(_ hash: Digest, in partition: PartitionID) -> StagedKey? {
    shares[partition]?[hash]?.values.filter(\.isWhole).map(\.key).min()
  }

  /// What a pull to the device names: what is here of it from that device and, unless `ownAlone`, what is whole. Nothing
  /// of other partitions, of which the peer may not know.
  func named(in partition: PartitionID, to device: DeviceID, ownAlone: Bool) -> [StagedPayload] {
    let named = (shares[partition] ?? [:]).compactMap { hash, byDevice -> StagedPayload? in
      let counting = byDevice.values.filter { $0.key.device == device || $0.isWhole && !ownAlone }
      return counting.map(\.byteCount).max().map { StagedPayload(hash: hash, byteCount: $0) }
    }
    return Array(named.sorted { $0.hash < $1.hash }.prefix(PartitionVector.stagedLimit))
  }

  /// Shares that go, where so many bytes more come to one: of the same device, where it has too much; of whoever has
  /// most, where all have. They spare their senders sending them again, no more.
  package func displaced(by count: Int, for key: StagedKey) -> [StagedKey] {
    var left = self
    var displaced: [StagedKey] = []
    func displace(_ device: DeviceID) {
      let gone = left.all.map(\.key).filter { $0.device == device && $0 != key }
      for key in gone { left.remove(key) }
      displaced += gone
    }
    if left.byteCounts[key.device, default: 0] + count > StagedPayloads.deviceByteLimit { displace(key.device) }
    while left.byteCount + count > StagedPayloads.byteLimit, let most = left.heaviest(besides: key) { displace(most) }
    return displaced
  }

  /// The device with most bytes, of those that have any beside one share; of equals, that with the lowest id.
  private func heaviest(besides key: StagedKey) -> DeviceID? {
    let kept = Int(self[key]?.byteCount ?? 0)
    return byteCounts.filter { $0.key != key.device || $0.value > kept }
      .max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
  }
}
