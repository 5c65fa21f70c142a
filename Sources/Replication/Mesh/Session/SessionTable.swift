/// All sessions of a node: what goes to each of them, and what those of one device may make the node hold together.
package struct SessionTable: Sendable {
  /// Sessions of one device: a process has one, and a restart or a copy of its directory may bring another before the first
  /// is found dead. One more may be there that has not said hello yet.
  package static let perDevice = 3
  /// What runs that came ahead may take in memory, on all sessions of one device: bytes, and their contexts' entries.
  static let postponedByteLimit = 4 * 1024 * 1024

  private var all = InPlaceTable<SessionID, PeerSession>()
  /// When the newest of them began, or one that is gone by now.
  private(set) var lastOpenedAt = MonotonicTime(milliseconds: 0)

  package init() {}

  /// Changed in place: a copy would copy the streams.
  package subscript(id: SessionID) -> PeerSession? {
    _read { yield all[id] }
    _modify { yield &all[id] }
  }

  func holds(_ id: SessionID) -> Bool { all.holds(id) }

  /// Answers what is asked of the whole session. Nil where there is none.
  func look<Answer>(at id: SessionID, _ body: (PeerSession) -> Answer) -> Answer? { all.look(at: id, body) }

  package var count: Int { all.count }
  package var isEmpty: Bool { all.isEmpty }
  package var values: some Collection<PeerSession> { all.values }
  /// For whoever looks at a part of each, often.
  var eachInPlace: some Collection<InPlace<PeerSession>> { all.eachInPlace }
  /// Ascending.
  package var ids: [SessionID] { all.keys.sorted() }

  mutating func add(_ session: PeerSession) {
    lastOpenedAt = max(lastOpenedAt, session.openedAt)
    all[session.id] = session
  }

  mutating func remove(_ id: SessionID) -> PeerSession? { all.removeValue(forKey: id) }

  func hasOthers(than id: SessionID) -> Bool {
    all.eachInPlace.contains { $0.look { $0.id != id && $0.phase == .live } == true }
  }

  // MARK: When

  // Asked at every turn: nothing of a session is copied but what is looked at.

  var haveStatementsToSay: Bool {
    all.eachInPlace.contains { $0.value?.isWritable == true && $0.value?.outbox.isEmpty == false }
  }

  var nextRelay: MonotonicTime? { all.eachInPlace.lazy.compactMap { $0.value?.live?.relays.earliest }.min() }
  var nextAnnouncement: MonotonicTime? { all.eachInPlace.lazy.compactMap { $0.value?.sparing?.announcedAt }.min() }

  // MARK: To each of them

  /// News of a chain with two histories, or with work above its limit, for everyone who follows the partition.
  mutating func showNews(of replica: ReplicaID, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    for id in ids { all[id]?.showNews(of: replica, partition, ledger, &step) }
  }

  mutating func showHeld(_ replicas: Set<ReplicaID>, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    for replica in replicas.sorted() where ledger.partitions[partition]?.log.heldAbove[replica] != nil {
      showNews(of: replica, partition, ledger, &step)
    }
  }

  /// Of chains that statements moved.
  mutating func showHeldUnderWay(
    _ replicas: Set<ReplicaID>, _ partition: PartitionID, _ ledger: Ledger, _ step: inout Step
  ) {
    guard let held = ledger.partitions[partition]?.log.heldAbove, !held.entries.isEmpty else { return }
    for (replica, position) in held.sorted where replicas.contains(replica) {
      for id in ids { all[id]?.showHeldUnderWay(position, of: replica, partition, ledger, &step) }
    }
  }

  mutating func offerHeldWork(_ partition: PartitionID, _ ledger: Ledger, _ step: inout Step) {
    for id in ids { all[id]?.offerHeldWork(partition, ledger, &step) }
  }

  mutating func askForHandedOverEarly(_ ledger: Ledger, _ step: inout Step) {
    for id in ids { all[id]?.askForHandedOverEarly(ledger, &step) }
  }

  /// Statements of the fleet that were learnt. Whatever is sent from now on may stand on them.
  mutating func hear(_ fresh: [Statement], exceptTo source: SessionID?, _ ledger: Ledger, _ step: inout Step) {
    guard !fresh.isEmpty else { return }
    for id in ids where id != source { all[id]?.hear(fresh, ledger, &step) }
  }

  mutating func dropUnhearable(_ ledger: Ledger) {
    for (id, session) in all where !session.outbox.isEmpty { all[id]?.dropUnhearable(ledger) }
  }

  // MARK: What is in common

  /// It has to be looked at anew with these devices; nil: with all.
  mutating func scopeMoved(of devices: Set<PublicKey>? = nil) {
    for (id, session) in all where devices?.contains(session.peer) != false { all[id]?.live?.comparison.sums = nil }
  }

  /// Two may speak of more than before: it is compared at the next tick.
  mutating func scopeWidened(_ now: MonotonicTime) {
    for id in all.keys { scopeWidened(with: id, now) }
  }

  mutating func scopeWidened(with id: SessionID, _ now: MonotonicTime) {
    all[id]?.live?.level.forget()
    all[id]?.live?.comparison.hasten(now)
  }

  mutating func digestsMoved(_ moved: [PartitionID: Digest?]) {
    for id in all.keys { all[id]?.live?.comparison.sums?.moved(moved) }
  }

  /// Nobody wants it any more here.
  mutating func forget(_ partition: PartitionID) {
    for id in all.keys { all[id]?.live?.forget(partition) }
  }

  // MARK: Sessions of one device

  private func others(than session: PeerSession) -> [PeerSession] {
    all.values.filter { $0.device == session.device && $0.id != session.id }
      .sorted { ($0.openedAt, $0.id) < ($1.openedAt, $1.id) }
  }

  /// Those of a device that go for the newest: whoever seems to be there least, and of several the oldest, which may be what is
  /// left of a connection that nobody has anymore. The newest stays; but before its hello nobody goes for it who is there, or
  /// connections that say nothing would cost a device the session on which it is heard.
  func surplus(besides id: SessionID, _ now: MonotonicTime) -> [SessionID] {
    guard let newest = all[id] else { return [] }
    let others = others(than: newest)
    let count = max(0, others.count + 1 - SessionTable.perDevice)
    // Those of one presence stay in the order of their age.
    return others.enumerated().map { (presence: $1.presence(now), place: $0, id: $1.id) }
      .sorted { ($0.presence, $0.place) < ($1.presence, $1.place) }.prefix(count)
      .filter { newest.hello != nil || $0.presence <= .unheard }.map(\.id)
  }

  /// What all sessions of one device want counts together, as much as one may: the oldest give way. A copy of a device, or a
  /// connection that is not known to be dead yet, wants the same.
  func wantingTooMuch(besides id: SessionID) -> [SessionID] {
    guard let session = all[id] else { return [] }
    var items = session.peerInterest?.itemCount ?? 0
    return others(than: session).reversed().filter { other in
      items += other.peerInterest?.itemCount ?? 0
      return items > Interest.itemLimit
    }.map(\.id)
  }

  /// Of two connections to one process both ends keep the same one (``KeepRule``): those that go for this one to stay, or this
  /// one itself last.
  func duplicates(of id: SessionID, on thisDevice: DeviceID, _ now: MonotonicTime) -> [SessionID] {
    guard let session = all[id] else { return [] }
    var closed: [SessionID] = []
    for other in all.values.sorted(by: { $0.id < $1.id })
    where other.id != id && other.device == session.device && other.isSameProcess(as: session)
      && !other.isUndecided(against: session)
    {
      let choice = KeepRule.choose(
        existing: other.link, new: session.link, thisDevice: thisDevice, peer: session.device, now: now)
      closed.append(choice == .keepNew ? other.id : id)
      if choice == .keepExisting { break }
    }
    return closed
  }

  // MARK: Vectors

  /// As much of a vector as there is room for, of a device.
  mutating func bounded(
    _ vector: VersionVector, _ id: SessionID, _ partition: PartitionID, _ ledger: Ledger, _ step: Step
  ) -> VersionVector {
    guard let session = all[id] else { return vector }
    let known = session.live?.streams[partition]?.known
    let fresh = vector.entries.keys.filter { known?[$0] == nil && ledger.isAwaited($0, partition) }
    guard !fresh.isEmpty else { return vector }
    all[id]?.live?.awaited.count += fresh.count
    guard awaitedChains(of: session.device) > AwaitedChains.limit else { return vector }
    // What came since may be here by now. Counting costs as much as there is room, so that is not done for each message.
    if let countedAt = session.live?.awaited.countedAt,
      step.now.millisecondsSince(countedAt) >= step.configuration.catchUpSilenceMilliseconds
    {
      recountAwaitedChains(of: session.device, ledger, step.now)
      all[id]?.live?.awaited.count += fresh.count
    }
    guard awaitedChains(of: session.device) > AwaitedChains.limit else { return vector }
    all[id]?.live?.awaited.count -= fresh.count
    let dropped = Set(fresh)
    return VersionVector(vector.entries.filter { !dropped.contains($0.key) })
  }

  private func awaitedChains(of device: DeviceID) -> Int {
    sum(over: device) { $0.live?.awaited.count }
  }

  /// Over all sessions of the device.
  private func sum(over device: DeviceID, of count: (PeerSession) -> Int?) -> Int {
    all.eachInPlace.reduce(0) { sum, place in
      sum + (place.look { $0.device == device ? count($0) ?? 0 : 0 } ?? 0)
    }
  }

  private mutating func recountAwaitedChains(of device: DeviceID, _ ledger: Ledger, _ now: MonotonicTime) {
    for id in all.keys where all[id]?.device == device {
      let count = (all[id]?.live?.streams ?? InPlaceTable()).reduce(0) { count, stream in
        count + stream.value.known.entries.keys.count { ledger.isAwaited($0, stream.key) }
      }
      all[id]?.live?.awaited = AwaitedChains(count: count, countedAt: now)
    }
  }

  // MARK: Evidence that waits

  /// There is room for so many bytes more.
  func mayPostpone(_ byteCount: Int, on id: SessionID) -> Bool {
    guard let device = all[id]?.device else { return false }
    let waiting = sum(over: device) { $0.live?.postponedByteCount }
    return waiting + byteCount <= SessionTable.postponedByteLimit
  }

  func lookAtInvariants(_ ledger: Ledger) {
    var postponed: [SessionID: Int] = [:]
    for run in ledger.partitions.values.lazy.flatMap(\.waiting.ahead.all) {
      postponed[run.session, default: 0] += run.byteCount
    }
    for (id, session) in all {
      Invariant.check((session.phase == .live) == (session.live != nil), "a session's phase is not what it holds")
      Invariant.check(
        session.live?.postponedByteCount ?? 0 == postponed[id] ?? 0, "what waits of a session is not what is counted")
    }
  }
}
