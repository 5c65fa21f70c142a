/// What goes out of one partition to a peer: catch-up first and live as its continuation (rule C9).
struct OutgoingStream: Sendable {
  /// The peer asked for it, by a pull or by an equal summary; the number is the peer's. Nil: not open.
  private(set) var number: UInt64?
  /// Sent beyond what the peer has announced.
  var sent = VersionVector()
  /// Not sent, since somebody with whom the peer is linked brings it there.
  var left = LeftRuns()
  /// Chains of which the peer stands on another branch and takes no more: nothing of them goes out, and what has seen them goes
  /// without.
  private(set) var passed: Set<ReplicaID> = []
  /// Chains of `passed` that may go out once the read under way has ended. The log was asked without them.
  private var passedUntilRead: Set<ReplicaID> = []
  /// Of what is left, by chain from where on they do not bring it any more. What goes out behind the payload was read without it.
  private var backBehindPayload: [ReplicaID: UInt64] = [:]
  /// Answers of the log are on their way.
  private(set) var isLoading = false
  /// Asked of the log at once; nil: as much as usual. More where all that was read is left out.
  private var loadByteLimit: Int?
  /// Bytes that the peer holds already of payloads that travel apart.
  private var staged: [Digest: UInt64] = [:]
  private var payload: PayloadUnderWay?
  /// All of its pieces have gone out, and its run is next.
  private var wholePayload: Digest?
  /// Base of the next context (rule C3).
  private var base: VersionVector?

  init(number: UInt64?) { self.number = number }

  /// The peer has pulled: what went out on the stream before is void.
  /// - Parameter base: of the first context; nil: that is whole.
  mutating func begin(_ number: UInt64, naming staged: [StagedPayload], base: VersionVector?) {
    self.number = number
    (sent, passed, passedUntilRead) = (VersionVector(), [], [])
    (left, backBehindPayload) = (LeftRuns(), [:])
    (isLoading, payload, wholePayload) = (false, nil, nil)
    self.base = base
    self.staged = Dictionary(staged.map { ($0.hash, $0.byteCount) }) { first, _ in first }
  }

  /// Nobody else brings this of what was left to others. What is being read follows on it, and is void: that is to be read
  /// anew.
  mutating func takeBackLeft(_ back: LeftRuns.Back) {
    guard payload == nil else { return backBehindPayload.merge(starts(of: back)) { min($0, $1) } }
    left.takeBack(inOrder(back))
    isLoading = false
  }

  /// Of what is left by now: what is left to others from now on, they bring.
  private func starts(of back: LeftRuns.Back) -> [ReplicaID: UInt64] {
    switch back {
    case .from(let starts): starts
    case .all: left.vector.entries.reduce(into: [:]) { $0[$1.key] = sent.sequence(of: $1.key) + 1 }
    }
  }

  /// The peer has so much now. Of what it has all of that was left, there is nothing to take back.
  mutating func endLeft(_ known: VersionVector) {
    backBehindPayload = backBehindPayload.filter { known.sequence(of: $0.key) < left.vector.sequence(of: $0.key) }
    left.end(known)
  }

  /// Without chains of which something that follows has gone out, having come here another way: their streams go on behind that.
  /// What was taken back would not go out, but what others bring behind it would.
  private func inOrder(_ back: LeftRuns.Back) -> LeftRuns.Back {
    guard case .from(let starts) = back else { return back }
    return .from(starts.filter { sent.sequence(of: $0.key) < $0.value })
  }

  /// When what goes out behind the payload has gone.
  mutating func takeBackBehindPayload() {
    guard payload == nil, !backBehindPayload.isEmpty else { return }
    takeBackLeft(.from(backBehindPayload))
    backBehindPayload = [:]
  }

  /// Answers how much is to be asked of the log.
  mutating func beginLoad(_ usual: Int) -> Int {
    isLoading = true
    return loadByteLimit ?? usual
  }

  mutating func endLoad() { isLoading = false }

  /// Nothing else goes out: what comes next follows on what is being read, or on a payload.
  var isBusy: Bool { isLoading || payload != nil }

  /// All that was read is held back, or something went out. What was all left out would be read again and again: past it
  /// lies what can go. False where nothing could be sent of the largest load.
  mutating func setNextLoad(isStuck: Bool, usual: Int, largest: Int) -> Bool {
    let limit = loadByteLimit ?? usual
    guard !isStuck || limit < largest else { return false }
    let doubled = limit.multipliedReportingOverflow(by: 2).partialValue
    loadByteLimit = isStuck ? min(doubled, largest) : nil
    return true
  }

  mutating func readUsualAmount() { loadByteLimit = nil }

  /// The run as it goes out next.
  mutating func put(_ run: LoggedRun) -> RunBatch.Entry {
    defer {
      if run.apart != nil { wholePayload = nil }
      base = run.context
      sent[run.replica] = ChainPosition(sequence: run.last, tip: .zero)
    }
    return RunBatch.Entry(context: ContextForm.shorter(run.context, base: base), encoded: run.encoded)
  }

  mutating func pass(_ replica: ReplicaID) {
    passed.insert(replica)
    passedUntilRead.remove(replica)
  }

  /// The peer has moved on in these chains, or they are shown to it. Answers whether some of them may go out now.
  @discardableResult mutating func passNoMore(_ replicas: Set<ReplicaID>) -> Bool {
    let over = replicas.intersection(passed)
    guard !isLoading else {
      passedUntilRead.formUnion(over)
      return false
    }
    passed.subtract(over)
    return !over.isEmpty
  }

  /// What was read has gone out. Answers whether there is more to be read now.
  mutating func settlePassed() -> Bool {
    guard !isLoading, !passedUntilRead.isEmpty else { return false }
    passed.subtract(passedUntilRead)
    passedUntilRead = []
    return true
  }

  // MARK: Payloads that travel apart

  /// One that goes out, and what goes behind it: its own run first.
  private struct PayloadUnderWay {
    let runs: ArraySlice<LoggedRun>
    let payload: ApartPayload
    /// Where the next piece begins.
    var offset: UInt64
  }

  /// The peer lacks something of the payload, which goes ahead of its run.
  func lacksPieces(of payload: ApartPayload) -> Bool {
    wholePayload != payload.hash && staged[payload.hash] ?? 0 < UInt64(payload.bytes.count)
  }

  /// What was begun is sent to its end, whatever the peer says meanwhile: no other payload may come between.
  mutating func beginPayload(_ runs: ArraySlice<LoggedRun>) {
    guard let payload = runs.first?.apart else { return }
    self.payload = PayloadUnderWay(runs: runs, payload: payload, offset: staged[payload.hash] ?? 0)
  }

  mutating func takePiece(_ byteLimit: Int, of name: PartitionName) -> PayloadPiece? {
    guard let number, let before = payload else { return nil }
    let piece = before.payload.piece(from: before.offset, byteLimit, of: name, on: number)
    payload?.offset = piece.end
    return piece
  }

  /// Once all of the payload has gone out.
  mutating func takeBehindPayload() -> ArraySlice<LoggedRun>? {
    guard let sent = payload, sent.offset >= UInt64(sent.payload.bytes.count) else { return nil }
    (payload, wholePayload) = (nil, sent.payload.hash)
    return sent.runs
  }
}

/// What comes of one partition from a peer.
struct IncomingStream: Sendable {
  /// Our number for it; nil: not asked for yet.
  private(set) var number: UInt64?
  /// Base of the next context (rule C3).
  var base: VersionVector?
  var payloads = ArrivingPayloads()
  var leftOut = LeftOutChains()
  private var lastProgress: MonotonicTime
  private var lastPiece: MonotonicTime?

  init(number: UInt64?, now: MonotonicTime) { (self.number, lastProgress) = (number, now) }

  /// Equal summaries opened it, without a pull. Each end opens and closes its own by what it knows of scopes and rights: one
  /// end may hold such a stream that the other does not have any more, or has begun anew.
  var isLevel: Bool { number == PeerStream.level }

  mutating func begin(_ number: UInt64, naming staged: [StagedPayload], base: VersionVector?, _ now: MonotonicTime) {
    self.number = number
    self.base = base
    payloads.begin(naming: staged)
    lastProgress = now
  }

  /// It is to be asked for anew.
  mutating func close() { number = nil }

  mutating func noteProgress(_ now: MonotonicTime) { lastProgress = now }

  mutating func notePiece(_ now: MonotonicTime) {
    (lastProgress, lastPiece) = (now, now)
    leftOut.noteProgress()
  }

  /// What comes next waits for a payload.
  func hasPiece(within milliseconds: UInt64, _ now: MonotonicTime) -> Bool {
    lastPiece.map { now.millisecondsSince($0) < milliseconds } ?? false
  }

  func isSilent(for milliseconds: UInt64, _ now: MonotonicTime) -> Bool {
    now.millisecondsSince(lastProgress) > milliseconds
  }

  /// The run's context stands on one that the peer sent before this side began the stream anew. Each side's first context
  /// on a stream is whole, so that this is no breach of the peer's.
  func lacksBase(of run: IncomingRun) -> Bool {
    guard isLevel, base == nil else { return false }
    if case .increments = run.context { return true }
    return false
  }
}
