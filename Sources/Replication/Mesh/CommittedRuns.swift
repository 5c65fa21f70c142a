/// Runs of one partition that are durable now.
struct CommittedRuns {
  let partition: PartitionID
  let name: PartitionName
  /// Who brought them; nil for own ones.
  let source: SessionID?
  /// Of the session that brought them; nil for own ones.
  let bringer: Bringer?
  let runs: [LoggedRun]
  /// What was held before them, and before all that became durable at once with them.
  let before: VersionVector
  /// What is announced of them.
  let offered: VersionVector

  struct Bringer {
    let device: DeviceMark
    /// Another session is with a copy of the device: whoever says to be linked with it may be linked with that one.
    var isCopied = false
    /// Who wrote them; empty where that are too many to look at each, or one is known not to bring them, and where nobody asks.
    let authors: Set<DeviceMark>
    /// Peers that are linked with it, too, and follow the partition; empty where nobody asks.
    let linked: [Linked]
    /// When its session began, of a peer that was ahead by more than a few changes and catches this node up.
    let aheadSince: MonotonicTime?

    static let authorLimit = 8

    struct Linked {
      let device: DeviceMark
      let neighbours: Set<DeviceMark>
    }
  }

  init(
    _ partition: PartitionState, from source: SessionID?, by bringer: Bringer? = nil, _ runs: [LoggedRun],
    before: VersionVector
  ) {
    (self.partition, name) = (partition.id, partition.name)
    (self.source, self.bringer, self.runs) = (source, bringer, runs)
    self.before = before
    let clipped = partition.log.clipped
    var offered = VersionVector()
    for run in runs where offered[run.replica] == nil { offered[run.replica] = clipped[run.replica] }
    self.offered = offered
  }
}

extension CommittedRuns.Bringer {
  /// Nil where it is of one of several.
  var markIfAlone: DeviceMark? { isCopied ? nil : device }

  /// Nil for own runs, and where the session has ended.
  ///
  /// - Parameter bringsMuch: the session catches this node up, by more than a few changes.
  init?(
    _ source: SessionID?, of runs: [LoggedRun], in partition: PartitionID, _ name: PartitionName, bringsMuch: Bool,
    _ sessions: SessionTable, _ ledger: Ledger
  ) {
    guard let source, let peer = sessions.look(at: source, \.device) else { return nil }
    device = DeviceMark(peer)
    isCopied = sessions.hasCopy(of: source)
    // Of every link something is looked at for these: before the first push, since that moves what the links are known to have.
    if !isCopied, sessions.mayLeave(runs, of: partition, by: source, device) {
      authors = ledger.authors(of: runs, in: partition, sessions)
      let starts = runs.reduce(into: [ReplicaID: UInt64]()) { $0[$1.replica] = min($0[$1.replica] ?? .max, $1.first) }
      linked = sessions.linked(with: device, followingFrom: starts, partition, name, ledger)
    } else {
      (authors, linked) = ([], [])
    }
    aheadSince = bringsMuch ? sessions.look(at: source, \.openedAt) : nil
  }
}

extension SessionTable {
  /// Another live session is with the same device, and another process, and both have said something since both sessions began:
  /// one that has not has ended and was started again.
  fileprivate func hasCopy(of id: SessionID) -> Bool {
    guard let session = self[id] else { return false }
    return eachInPlace.contains { place in
      place.look { other in
        other.id != id && other.device == session.device && other.phase == .live && !other.isSameProcess(as: session)
          && min(other.pulse.lastHeard, session.pulse.lastHeard) >= max(other.openedAt, session.openedAt)
      } == true
    }
  }

  /// To whom the device brings what goes on there of these chains.
  func linked(
    with device: DeviceMark, followingFrom starts: [ReplicaID: UInt64], _ partition: PartitionID, _ name: PartitionName,
    _ ledger: Ledger
  ) -> [CommittedRuns.Bringer.Linked] {
    eachInPlace.filter { place in
      place.look { $0.isLinked(with: device) && $0.follows(from: starts, partition, name, ledger) } == true
    }.compactMap { place in
      place.look { .init(device: DeviceMark($0.device), neighbours: $0.sparing?.neighbours ?? []) }
    }
  }
}

extension [CommittedRuns.Bringer.Linked] {
  /// Of all that are linked with who brought it and with the peer, one passes it on: the nearest to the peer.
  func nearest(to peer: DeviceMark, than own: DeviceMark) -> DeviceMark? {
    filter { $0.device != peer && $0.neighbours.contains(peer) && $0.device.isNearer(to: peer, than: own) }
      .map(\.device).min { $0.isNearer(to: peer, than: $1) }
  }
}

extension Ledger {
  /// Empty where they are too many to look at each, one is not known, or one is linked with this node and is known not to
  /// bring what it wrote.
  fileprivate func authors(
    of runs: [LoggedRun], in partition: PartitionID, _ sessions: SessionTable
  ) -> Set<DeviceMark> {
    let ends = runs.reduce(into: [ReplicaID: UInt64]()) { $0[$1.replica] = max($0[$1.replica] ?? 0, $1.last) }
    let keys = Set(ends.keys.map { authority.author(of: $0) })
    guard keys.count <= CommittedRuns.Bringer.authorLimit, !keys.contains(nil) else { return [] }
    let ofAuthors = sessions.eachInPlace.compactMap { $0.look { keys.contains($0.peer) ? $0.id : nil } ?? nil }
    guard !ofAuthors.contains(where: sessions.hasCopy) else { return [] }
    let isLackedByAuthor = sessions.eachInPlace.contains { place in
      place.look { session in
        keys.contains(session.peer)
          && session.isKnownToLack(ends.filter { authority.author(of: $0.key) == session.peer }, of: partition, self)
      } == true
    }
    guard !isLackedByAuthor else { return [] }
    return Set(keys.compactMap { $0.map { DeviceMark(DeviceID.derived(from: $0, cryptography.hash)) } })
  }
}

extension SessionTable {
  /// There may be a peer to whom others than the device bring some of these, by what ``PushPolicy`` then asks of who they are.
  fileprivate func mayLeave(
    _ runs: [LoggedRun], of partition: PartitionID, by source: SessionID, _ device: DeviceMark
  ) -> Bool {
    eachInPlace.contains { place in
      place.look { $0.id != source && !$0.isLinked(with: device) && $0.mayLeave(runs, of: partition) } == true
    }
  }
}

extension PeerSession {
  /// The peer may lack some of these that it wants neither from here nor from others. Where no stream is open, equal summaries may
  /// still open one.
  fileprivate func mayLeave(_ runs: [LoggedRun], of partition: PartitionID) -> Bool {
    guard sparing != nil, let choices = live?.choices else { return false }
    return runs.contains { choices.isFree($0.replica, in: partition) }
      && (!hasStream(partition) || !lacked(of: runs, in: partition).isEmpty)
  }

  /// The peer has what comes before these places of chains, or is to have it, so that it gets what goes on there from whoever
  /// brought it here. One that lacks it catches up, perhaps from this node, and would leave it to this node to pass that on.
  fileprivate func follows(
    from starts: [ReplicaID: UInt64], _ partition: PartitionID, _ name: PartitionName, _ ledger: Ledger
  ) -> Bool {
    guard isInScope(partition, name, ledger), isCompared(withChangesOf: partition) else { return false }
    let isFollowed = live?.streams.look(at: partition) { stream in
      starts.allSatisfy { $0.value == 1 || stream.covers($0.key, $0.value - 1) }
    }
    return isFollowed ?? (live?.level.contains(partition, name) == true)
  }

  /// The peer does not carry the partition, or not so much of these chains, as where its store was put back. What a
  /// comparison is still to tell is not known.
  fileprivate func isKnownToLack(_ ends: [ReplicaID: UInt64], of partition: PartitionID, _ ledger: Ledger) -> Bool {
    guard phase == .live else { return false }
    guard isInScope(partition, ledger) else { return true }
    guard isCompared(withChangesOf: partition) else { return false }
    let known = live?.streams[partition]?.known ?? VersionVector()
    return ends.contains { known.sequence(of: $0.key) < $0.value }
  }
}
