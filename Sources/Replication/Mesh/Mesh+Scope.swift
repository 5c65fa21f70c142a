// Interest and summaries: which partitions two nodes have to speak about, and whether there is anything to say.
extension Mesh {
  mutating func beginInterest(_ id: SessionID, _ hello: Hello, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    if session.peerInterest != nil || session.mustAskInterest {
      // Told already, or changed since the hello: what is remembered under the hello's digest no longer holds.
    } else if hello.interest == interest.digest(cryptography.hash) {
      sessions[id]?.peerInterest = interest
    } else if let cached = interestCache[session.device], cached.digest == hello.interest {
      sessions[id]?.peerInterest = cached.interest
    }
    sessions[id]?.phase = .awaitingInterest
    guard sessions[id]?.peerInterest == nil else { return goLive(id, &step) }
    step.emit(.send(id, .interestRequest))
  }

  /// What came to be wanted between this side's hello and the peer's was told to nobody.
  func restateInterest(_ id: SessionID, _ step: inout Step) {
    guard let stated = sessions[id]?.statedInterest, stated != interest.digest(cryptography.hash) else { return }
    step.emit(.send(id, .interest(interest)))
  }

  mutating func peerInterestReplaced(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let before = sessions[id]?.peerInterest else { return }
    peerInterestChanged(id, wanted.removing(before), before.removing(wanted), &step)
  }

  mutating func receiveInterest(_ id: SessionID, _ wanted: Interest, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.peerInterest = wanted
    remember(wanted, of: session.device)
    if session.phase == .awaitingInterest { goLive(id, &step) }
  }

  private mutating func remember(_ wanted: Interest, of device: DeviceID) {
    if interestCache[device] == nil, interestCache.count >= Mesh.interestCacheLimit,
      let first = interestCache.keys.min()
    {
      interestCache[first] = nil
    }
    interestCache[device] = (wanted.digest(cryptography.hash), wanted)
  }

  private mutating func goLive(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    sessions[id]?.phase = .live
    sessions[id]?.levelScope = (interest, session.peerInterest ?? Interest())
    step.emit(.note(id, .sessionReady(session.device)))
    sendSummary(id, &step)
    compareSummaries(id, &step)
  }

  // MARK: Common scope

  /// Partitions that both want and both may carry: nothing else is named or sent on this session.
  func isInScope(_ session: PeerSession, _ partition: PartitionState) -> Bool {
    isInScope(session, partition.id, partition.name)
  }

  func isInScope(_ session: PeerSession, _ id: PartitionID, _ name: PartitionName) -> Bool {
    interest.wants(id, name: name) && session.peerInterest?.wants(id, name: name) == true
      && authority.level(of: session.peer, in: name) >= .carry && authority.level(of: local.device, in: name) >= .carry
  }

  // MARK: Summaries

  mutating func sendSummary(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let summary = summary(for: session)
    sessions[id]?.summarySent = summary
    sessions[id]?.vectorsAtSummary = [:]
    step.emit(.send(id, .summary(summary)))
  }

  private func summary(for session: PeerSession) -> Summary {
    var inputs = [[UInt8]](repeating: [], count: Summary.bucketCount)
    for id in partitions.keys.sorted() {
      guard let partition = partitions[id], isInScope(session, partition) else { continue }
      let vector = partition.log.clipped
      guard !vector.isEmpty else { continue }
      id.digest.append(to: &inputs[Summary.bucket(of: id)])
      vector.digest(.vector, cryptography.hash).append(to: &inputs[Summary.bucket(of: id)])
      partition.log.appendForks(to: &inputs[Summary.bucket(of: id)])
    }
    var prefix = DomainTag.summary.bytes
    session.exporter.append(to: &prefix)
    return Summary(
      buckets: inputs.map { $0.isEmpty ? 0 : Digest.of(prefix + $0, cryptography.hash).words.0 })
  }

  mutating func receiveSummary(_ id: SessionID, _ summary: Summary, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    // A later comparison, begun by the peer, is answered by what stands here now.
    if session.phase == .live, session.summarySent == nil {
      guard allowsAnswer(session, step.now) else { return }
      sendSummary(id, &step)
    }
    sessions[id]?.summaryReceived = summary
    compareSummaries(id, &step)
  }

  /// Each summary calls for another, so one too many, which a peer need send only once, would go to and fro for ever. Of
  /// those that come long before a comparison is due, a few are answered. Whom that leaves waiting has its answer in the
  /// next comparison that this side begins.
  private mutating func allowsAnswer(_ session: PeerSession, _ now: MonotonicTime) -> Bool {
    let isNearlyDue =
      now.advanced(byMilliseconds: configuration.antiEntropyMilliseconds / 2) >= session.nextComparison
    guard isNearlyDue || session.earlyComparisons < PeerSession.earlyComparisonLimit else { return false }
    sessions[session.id]?.earlyComparisons = isNearlyDue ? 0 : session.earlyComparisons + 1
    return true
  }

  private mutating func compareSummaries(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.phase == .live, let sent = session.summarySent,
      let received = session.summaryReceived
    else { return }
    var level: UInt64 = 0
    for (bucket, pair) in zip(sent.buckets, received.buckets).enumerated() where pair.0 == pair.1 {
      level |= 1 << UInt64(bucket)
    }
    sessions[id]?.summarySent = nil
    sessions[id]?.summaryReceived = nil
    sessions[id]?.levelBuckets |= level
    openLevelStreams(id, &step)
    sendVectors(id, where: { level >> UInt64(Summary.bucket(of: $0)) & 1 == 0 }, &step)
    let pause = session.mustCompareAgain ? 0 : configuration.antiEntropyMilliseconds
    sessions[id]?.nextComparison = step.now.advanced(byMilliseconds: pause)
    sessions[id]?.mustCompareAgain = false
  }

  /// Equal summaries, now or earlier, open the streams of a bucket. What changed since this side's summary left goes out.
  private mutating func openLevelStreams(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    let changed = session.vectorsAtSummary
    for partition in changed.keys.sorted() {
      guard let state = partitions[partition], session.isLevel(state) else { continue }
      if sessions[id]?.streams[partition] == nil {
        sessions[id]?.streams[partition] = PeerStream(
          known: changed[partition] ?? VersionVector(), outgoing: PeerStream.level, incoming: PeerStream.level,
          lastProgress: step.now)
      }
      pump(id, partition, &step)
    }
    sessions[id]?.vectorsAtSummary = [:]
  }

  mutating func sendVectors(_ id: SessionID, where isMeant: (PartitionID) -> Bool, _ step: inout Step) {
    guard let session = sessions[id] else { return }
    var batch: [PartitionVector] = []
    var entries = 0
    for partition in partitions.values.filter({ isMeant($0.id) && isInScope(session, $0) }).sorted(by: { $0.id < $1.id }
    ) {
      let vector = partition.log.clipped
      guard !vector.isEmpty else { continue }
      batch.append(PartitionVector(name: partition.name, vector: vector))
      entries += vector.count + 8
      if entries > PartitionVector.entryLimit {
        step.emit(.send(id, .vectors(batch)))
        (batch, entries) = ([], 0)
      }
    }
    if !batch.isEmpty { step.emit(.send(id, .vectors(batch))) }
  }

  // MARK: Changes of interest

  mutating func interestChanged(_ added: Interest, _ removed: Interest, _ step: inout Step) {
    interest = interest.adding(added).removing(removed)
    for id in sessions.keys.sorted() { closeStreams(id, removed) }
    for session in sessions.values.sorted(by: { $0.id < $1.id }) where session.hasStatements {
      step.emit(.send(session.id, .interestChange(added: added, removed: removed)))
      guard session.phase == .live else { continue }
      offerNewlyCommon(session.id, added, &step)
    }
  }

  mutating func peerInterestChanged(_ id: SessionID, _ added: Interest, _ removed: Interest, _ step: inout Step) {
    guard let session = sessions[id], let wanted = session.peerInterest else { return }
    let changed = wanted.adding(added).removing(removed)
    guard changed.isWithinLimits else { return fail(id, .protocolError, "an interest beyond its limits", &step) }
    sessions[id]?.peerInterest = changed
    remember(changed, of: session.device)
    closeStreams(id, removed)
    offerNewlyCommon(id, added, &step)
  }

  /// Of what one side wants no more. Wanted again, it begins anew.
  private mutating func closeStreams(_ id: SessionID, _ removed: Interest) {
    guard !removed.isEmpty, let session = sessions[id] else { return }
    sessions[id]?.levelScope = (session.levelScope.own.removing(removed), session.levelScope.peer.removing(removed))
    for partition in session.streams.keys
    where partitions[partition].map({ removed.wants($0.id, name: $0.name) }) == true {
      sessions[id]?.streams[partition] = nil
      sessions[id]?.relaysDue[partition] = nil
      if partitions[partition]?.catchUp?.session == id { partitions[partition]?.catchUp = nil }
    }
  }

  /// Under new statements a side may carry less. What is open to a session ends there at once: what was asked of the log
  /// before is not answered any more (I11). Allowed again, it begins anew.
  mutating func closeStreamsOutOfScope() {
    for (id, session) in sessions {
      for partition in session.streams.keys where !isInScope(session, partition) {
        sessions[id]?.streams[partition] = nil
        sessions[id]?.relaysDue[partition] = nil
        sessions[id]?.levelBuckets &= ~(1 << UInt64(Summary.bucket(of: partition)))
        if partitions[partition]?.catchUp?.session == id { partitions[partition]?.catchUp = nil }
      }
    }
  }

  func isInScope(_ session: PeerSession, _ partition: PartitionID) -> Bool {
    partitions[partition].map { isInScope(session, $0) } ?? false
  }

  /// Both sides name what they hold of it; each then pulls.
  private mutating func offerNewlyCommon(_ id: SessionID, _ added: Interest, _ step: inout Step) {
    let meant = Set(partitions.values.filter { added.wants($0.id, name: $0.name) }.map(\.id))
    guard !meant.isEmpty else { return }
    sendVectors(id, where: { meant.contains($0) }, &step)
  }
}
