import Testing

@testable import Replication
@testable import Simulation

@Suite("What is pushed to whom")
struct PushPolicyTests {
  private let partition = PartitionID(Digest(words: (1, 0, 0, 0)))
  private let replica = ReplicaID(high: 1, low: 1)
  private let now = MonotonicTime(milliseconds: 1_000)
  private let id = SessionID(rawValue: 1)

  private func run(_ sequence: UInt64) -> LoggedRun {
    LoggedRun(
      replica: replica, first: sequence, last: sequence, hashBefore: .zero, context: VersionVector(), encoded: [])
  }

  /// Of a live session whose peer has the chain up to `known`, on an open stream.
  private func session(known: UInt64, isOpen: Bool = true) throws -> PeerSession {
    let key = PublicKey(.zero)
    var session = PeerSession(
      id: id, isDialer: true, peer: key, device: DeviceID(.zero), exporter: .zero, now: now)
    session.goLive(LiveSession(openedAt: now, Interest(), Interest(), mustCompareAgain: false))
    var vector = VersionVector()
    if known > 0 { vector[replica] = ChainPosition(sequence: known, tip: .zero) }
    let name = try PartitionName("agency=x")
    session.live?.streams[partition] = PeerStream(name, known: vector, number: isOpen ? 1 : nil, now: now)
    return session
  }

  private func push(
    _ runs: [LoggedRun], from source: SessionID?, by bringer: CommittedRuns.Bringer? = nil, to session: PeerSession
  ) throws -> PushPolicy.Push {
    let name = try PartitionName("agency=x")
    let log = PartitionLog(
      name, authority: Authority(root: PublicKey(.zero), statements: [], hash: FakeCryptography.hash)
    ) {
      _ in .zero
    }
    let state = PartitionState(id: partition, name: name, log: log)
    let step = Step(Surroundings(now: now), MeshConfiguration())
    let committed = CommittedRuns(state, from: source, by: bringer, runs, before: VersionVector())
    return PushPolicy.push(committed, to: session, DeviceMark(word: 1), step)
  }

  @Test("own runs go out from memory where the peer lacks nothing before them, and otherwise from the log")
  func own() throws {
    let next = try push([run(2)], from: nil, to: session(known: 1))
    #expect(next.runs == .now && next.announcement == .none)
    #expect(try push([run(2)], from: nil, to: session(known: 0)).runs == .fromLog)
    var full = try session(known: 1)
    full.isWritable = false
    #expect(try push([run(2)], from: nil, to: full).runs == .fromLog)
  }

  @Test("where no stream is open, own runs are announced alone")
  func closed() throws {
    let push = try push([run(2)], from: nil, to: session(known: 1, isOpen: false))
    #expect(push.announcement == .now && push.runs == .none)
  }

  @Test("what another brought is announced to all, and passed on after a wait to who lacks it and did not bring it")
  func relayed() throws {
    let due = now.advanced(byMilliseconds: MeshConfiguration().relayMilliseconds)
    let other = SessionID(rawValue: 2)
    let lacking = try push([run(2)], from: other, to: session(known: 1))
    #expect(lacking.announcement == .now && lacking.runs == .relayed(at: due))
    #expect(try push([run(2)], from: id, to: session(known: 1)).runs == .none, "it brought them")
    #expect(try push([run(2)], from: other, to: session(known: 2)).runs == .none, "it has them")
    var waiting = try session(known: 1)
    waiting.live?.relays.begin(partition, at: now)
    #expect(try push([run(2)], from: other, to: waiting).runs == .none, "they go with those that wait")
  }

  @Test("what waits to be passed on waits longer where more of a meeting comes behind it")
  func meeting() throws {
    let bringer = CommittedRuns.Bringer(
      device: DeviceMark(word: 7), authors: [], linked: [], aheadSince: now)
    var waiting = try session(known: 1)
    waiting.sparing = CopySparing()
    waiting.live?.relays.begin(partition, at: now)
    let end = now.advanced(byMilliseconds: MeshConfiguration().meetingMilliseconds)
    #expect(try push([run(2)], from: SessionID(rawValue: 2), by: bringer, to: waiting).runs == .postponed(until: end))
    waiting.live?.relays.postpone(partition, until: end)
    #expect(waiting.live?.relays[partition] == end)
    waiting.live?.relays.postpone(partition, until: now)
    #expect(waiting.live?.relays[partition] == end)
    var closed = try session(known: 1, isOpen: false)
    closed.sparing = CopySparing()
    let told = try push([run(2)], from: SessionID(rawValue: 2), by: bringer, to: closed).announcement
    #expect(told == .heldBack(until: end), "who hears of it at once asks, and has it twice")
  }

  @Test(
    "what one of two copies of a device brings is left to nobody who is linked with that device, or is a copy of it")
  func copied() throws {
    let device = DeviceMark(word: 7)
    var linked = try session(known: 1)
    linked.sparing = CopySparing()
    linked.sparing?.hear(NeighbourNews(added: [device], removed: []))
    for isCopied in [false, true] {
      let bringer = CommittedRuns.Bringer(
        device: device, isCopied: isCopied, authors: [], linked: [], aheadSince: nil)
      let push = try push([run(2)], from: SessionID(rawValue: 2), by: bringer, to: linked)
      #expect(push.left.isEmpty == isCopied && (push.runs == .none) == !isCopied)
    }
  }

  @Test("what has been passed on, or is not to be any more, does not wait beside what waits later")
  func passedOnAlready() {
    var relays = RelaysDue()
    for sequence in [1, 3] as [UInt64] {
      relays.begin(partition, at: now)
      relays.note(run(sequence), of: partition, from: DeviceMark(word: 7))
      #expect(relays.waiting(of: partition).map(\.first) == [sequence])
      relays.end(partition)
      #expect(relays.waiting(of: partition).isEmpty && relays.waiting(from: [DeviceMark(word: 7)]).isEmpty)
    }
  }

  @Test("what is held back is not told with what was to be announced of its partition before, and that waits with it")
  func heldBack() throws {
    var sparing = CopySparing()
    func vector(_ sequence: UInt64) throws -> PartitionVector {
      PartitionVector(
        name: try PartitionName("agency=x"),
        vector: VersionVector([replica: ChainPosition(sequence: sequence, tip: .zero)]))
    }
    let (soon, late) = (now.advanced(byMilliseconds: 10), now.advanced(byMilliseconds: 2_000))
    let other = PartitionID(Digest(words: (2, 0, 0, 0)))
    #expect(sparing.gather(partition, try vector(1), until: soon))
    #expect(sparing.gather(other, try vector(1), until: soon))
    #expect(sparing.gather(partition, try vector(2), until: late, isHeldBack: true))
    #expect(sparing.takeGathered(soon).map(\.partition) == [other])
    #expect(sparing.announcedAt == late && sparing.takeGathered(soon).isEmpty)
    let isKept = sparing.gather(partition, try vector(2), until: soon)
    #expect(isKept, "what is announced sooner waits with it")
    let early = sparing.takeGathered(of: partition, soon)
    #expect(sparing.announcedAt == late && early == nil)
    let told = sparing.takeGathered(late)
    #expect(told.map(\.partition) == [partition] && told.first?.vector.vector.sequence(of: replica) == 2)
    #expect(sparing.announcedAt == nil)
  }

  @Test("newcomers that come one after the other do not put off for ever what is to be announced")
  func manyNewcomers() throws {
    var sparing = CopySparing()
    let vector = PartitionVector(
      name: try PartitionName("agency=x"), vector: VersionVector([replica: ChainPosition(sequence: 2, tip: .zero)]))
    let first = now.advanced(byMilliseconds: 2_000)
    for milliseconds in stride(from: UInt64(0), to: 20_000, by: 1_500) {
      let isKept = sparing.gather(
        partition, vector, until: first.advanced(byMilliseconds: milliseconds), isHeldBack: true)
      #expect(isKept)
    }
    let last = first.advanced(byMilliseconds: CopySparing.holdMilliseconds)
    #expect(!sparing.holdsBack(partition, last) && sparing.holdsBack(partition, first))
    #expect(sparing.takeGathered(first).isEmpty && sparing.takeGathered(last).map(\.partition) == [partition])
  }

  @Test("what a comparison or a pull has named meanwhile is held back no more, and its announcement stays due")
  func named() throws {
    var sparing = CopySparing()
    let vector = PartitionVector(
      name: try PartitionName("agency=x"), vector: VersionVector([replica: ChainPosition(sequence: 2, tip: .zero)]))
    let late = now.advanced(byMilliseconds: 2_000)
    let bringer = DeviceMark(word: 7)
    let isKept = sparing.gather(
      partition, vector, until: late, isHeldBack: true, runs: [run(1), run(2)], from: bringer)
    #expect(isKept)
    let chains = try #require(sparing.unannounced(partition)).chains
    #expect(chains.map(\.first) == [1] && chains.map(\.last) == [2] && chains.map(\.bringer) == [bringer])
    #expect(sparing.holdsBack(partition, now) && !sparing.holdsBack(partition, late))
    sparing.noteTold(partition)
    #expect(sparing.unannounced(partition) == nil && !sparing.holdsBack(partition, now))
    let isJoined = sparing.gather(partition, vector, until: late, runs: [run(3)], from: bringer)
    #expect(isJoined && sparing.unannounced(partition)?.chains.map(\.first) == [3], "of what came since alone")
    #expect(sparing.takeGathered(late).map(\.partition) == [partition])
  }

  @Test("of pieces of chains that wait no more are noted than there is room for, and the rest is not left to anybody")
  func manyBrought() {
    var brought = BroughtChains(limit: 2)
    for sequence in [1, 3, 5] as [UInt64] { brought.note(run(sequence), from: DeviceMark(word: 7)) }
    #expect(brought.chains.map(\.first) == [1, 3])
  }
}
