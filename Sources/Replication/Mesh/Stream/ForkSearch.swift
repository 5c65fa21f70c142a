/// Two histories of chains on one stream: which may differ from the peer's, and what each side was asked and shown of them.
///
/// A chain is held back, with all that has seen it, from the first sign of a difference until both sides have shown what
/// they hold above the last common position. Then it is settled, until something new is known of it.
struct ForkSearch: Sendable {
  private(set) var heldBack: Set<ReplicaID> = []
  /// Chains of `heldBack` of which no search is under way any more. A read that is under way has left them out, and what has
  /// seen them must not go out of it without them: they go with the next one.
  private var heldUntilRead: Set<ReplicaID> = []
  /// Chains of which all that is known here was shown to the peer, and through which sequence of the branch that counts here.
  private var settled: [ReplicaID: UInt64] = [:]
  /// Of those, through which sequence of that branch the stream has brought it since, as it is open now.
  private var streamed: [ReplicaID: UInt64] = [:]
  /// Chains of which the peer was asked what it holds, and has not answered yet.
  private var questioned: Set<ReplicaID> = []
  /// Chains of `questioned` of which the peer was asked before the present comparison began.
  private var questionedBefore: Set<ReplicaID> = []
  /// Searches of the peer's that were answered since the last comparison; each costs reading a chain. In a catch-up every
  /// batch of a chain that is held may be reason for one, and what is not answered is kept back until the next comparison.
  private var answeredProbes = 0

  static let answeredProbeLimit = 64

  /// What the peer has named of chains of which it is about to be shown what it lacks.
  private var named: [ReplicaID: [ChainPosition]] = [:]

  mutating func note(_ probe: ChainProbe) { named[probe.replica] = probe.positions }
  func named(of replica: ReplicaID) -> [ChainPosition] { named[replica] ?? [] }

  /// Chains that are shown in parts, since they are long, and whether something new came to be known of them meanwhile.
  private var shownInParts: [ReplicaID: Bool] = [:]

  func isShownInParts(_ replica: ReplicaID) -> Bool { shownInParts[replica] != nil }
  mutating func noteRest(of replica: ReplicaID) { shownInParts[replica] = shownInParts[replica] ?? false }

  /// All of it was shown. True where a part that was passed may have grown since.
  mutating func endShowing(of replica: ReplicaID) -> Bool {
    named[replica] = nil
    return shownInParts.removeValue(forKey: replica) ?? false
  }

  /// Nothing of it goes out now.
  func holdsBack(_ replica: ReplicaID) -> Bool { heldBack.contains(replica) }
  /// What both sides hold of it is being found out.
  func isSearched(_ replica: ReplicaID) -> Bool { heldBack.contains(replica) && !heldUntilRead.contains(replica) }

  var isSearching: Bool { heldBack.count > heldUntilRead.count }

  /// No read is under way. Answers whether anything may go out that could not before.
  mutating func endRead() -> Bool {
    guard !heldUntilRead.isEmpty else { return false }
    heldBack.subtract(heldUntilRead)
    heldUntilRead = []
    return true
  }

  private mutating func release(_ replica: ReplicaID) {
    if heldBack.contains(replica) { heldUntilRead.insert(replica) }
  }

  /// Answers whether the peer is to be asked: nothing is known to be level, and no search is under way.
  mutating func begin(_ replica: ReplicaID) -> Bool {
    guard settled[replica] == nil, !isSearched(replica) else { return false }
    holdBack(replica)
    questioned.insert(replica)
    return true
  }

  /// The same where the histories differ again although all was shown: another branch may have come to count here, or to go
  /// on. What is held back without a search would wait for the next comparison.
  mutating func beginAnew(_ replica: ReplicaID) -> Bool {
    doubt(replica)
    return begin(replica)
  }

  private mutating func doubt(_ replica: ReplicaID) { (settled[replica], streamed[replica]) = (nil, nil) }

  /// Whatever was shown of it before: nothing of it goes on the stream until a search has ended.
  mutating func holdBack(_ replica: ReplicaID) {
    heldBack.insert(replica)
    heldUntilRead.remove(replica)
  }

  /// The peer has, or gets with what is on its way, all that is known of the chain here.
  mutating func settle(_ replica: ReplicaID, through sequence: UInt64) {
    release(replica)
    settled[replica] = sequence
  }

  /// Nil where a search is still to come, or has not ended.
  func settled(_ replica: ReplicaID) -> UInt64? { settled[replica] }

  /// It went out on the stream, behind what was shown.
  mutating func noteSent(_ replica: ReplicaID, through sequence: UInt64) {
    if let shown = settled[replica], shown > 0 { streamed[replica] = sequence }
  }

  /// The stream has begun anew: what went out on it before is void. What was shown is not.
  mutating func beginStream() {
    streamed = [:]
    _ = endRead()
  }

  /// What of the branch that counts here is on its way for certain, whatever the peer says to hold.
  func onItsWay(_ replica: ReplicaID) -> UInt64 { max(settled[replica] ?? 0, streamed[replica] ?? 0) }

  /// Something new is known of it here. A search that is under way brings that, too.
  mutating func noteNews(of replica: ReplicaID) {
    doubt(replica)
    if shownInParts[replica] != nil { shownInParts[replica] = true }
  }

  /// What was shown of it is shown once more.
  ///
  /// Where it is being shown, when that is through: else the same parts would go out beside one another.
  mutating func forget(_ replica: ReplicaID) {
    guard shownInParts[replica] == nil else { return shownInParts[replica] = true }
    release(replica)
    questionedBefore.remove(replica)
    doubt(replica)
  }

  /// What was to be shown of it could not be read: the peer is asked anew with the next comparison.
  mutating func askAgain(_ replica: ReplicaID) {
    _ = endShowing(of: replica)
    guard isSearched(replica) else { return }
    doubt(replica)
    questioned.insert(replica)
  }

  /// Whether the peer's probe is gone on with. An answer to a question of this side's is none of the peer's questions.
  mutating func takes(_ probe: ChainProbe) -> Bool {
    if !probe.wantsReply, questioned.remove(probe.replica) != nil { return true }
    guard answeredProbes < ForkSearch.answeredProbeLimit else { return false }
    answeredProbes += 1
    return true
  }

  /// Whichever side began it: else a node that is always asked to compare would answer no searches after the first 64.
  ///
  /// - Parameter isEarly: the peer asked long before one was due, which lets it search no more often.
  mutating func beginComparison(isEarly: Bool = false) {
    if !isEarly { answeredProbes = 0 }
    questionedBefore = questioned
  }

  /// Chains that are held back for an answer that does not come, ascending: what is said on a session keeps its order, and the
  /// peer has passed over the question. It did not carry the partition for a moment, or had answered all that it may.
  var unanswered: [ReplicaID] { questionedBefore.intersection(questioned).filter(isSearched).sorted() }
}
