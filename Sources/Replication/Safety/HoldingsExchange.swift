/// What this node says of what it holds, to whom, and what it hears of others (decision 40).
///
/// A value without IO: it takes events and answers with directives. A record is in the ``book`` when it is on disk, and
/// told after that: ``Directive/keep(_:from:)`` is answered by ``kept(_:from:_:)``, or by nothing where it could not be
/// stored.
package struct HoldingsExchange: Sendable {
  package enum Directive: Sendable {
    case keep(SignedHoldings, from: SessionID?)
    case send(SessionID, HoldingsMessage)
  }

  package private(set) var book = HoldingsBook()
  var words: [PartitionID: [Holdings.Kind: OwnWord]] = [:]
  /// Partitions of which the own word must not stand.
  private var corrections: Set<PartitionID> = []
  /// Partitions in which something is, or may be, unspoken.
  var looks = LooksDue()
  var peers: [SessionID: HoldingsPeer] = [:]
  /// The book's revision at which it was last level with a process of a peer.
  private(set) var levels: [UUIDValue: UInt64] = [:]
  let rules: HoldingsRules

  static let levelLimit = 256

  package init(_ rules: HoldingsRules = HoldingsRules()) { self.rules = rules }

  /// The records that are stored, at start. Each own one was true of what was stored with it.
  package mutating func restore(_ records: [KeptHoldings], _ sight: some HoldingsSight) {
    book.noteRestored(sight.now)
    for kept in records {
      let partition = sight.id(of: kept.holdings.partition)
      guard put(kept, in: partition, sight), kept.holdings.device == sight.device else { continue }
      words[partition, default: [:]][kept.holdings.kind, default: OwnWord()].note(kept.holdings)
    }
    for (partition, name) in sight.partitions { noteUnsaid(partition, name, sight) }
    for partition in words.keys { for kind in Holdings.Kind.allCases { words[partition]?[kind]?.issuedAt = sight.now } }
  }

  /// What is held beyond the last own word, whose bytes were not counted.
  private mutating func noteUnsaid(_ partition: PartitionID, _ name: PartitionName, _ sight: some HoldingsSight) {
    guard let held = sayable(partition, name, sight) else { return }
    let said = book[partition, ownSubject(.received, sight)]?.holdings.vector ?? VersionVector()
    let unsaid = held.vector.entries.reduce(UInt64(0)) { sum, entry in
      sum &+ (entry.value.sequence - min(entry.value.sequence, said.sequence(of: entry.key)))
    }
    guard unsaid > 0 else { return }
    let bytes = unsaid.multipliedReportingOverflow(by: HoldingsRules.leastChangeBytes)
    grew(partition, name, byteCount: bytes.overflow ? .max : Int(clamping: bytes.partialValue))
  }

  func ownSubject(_ kind: Holdings.Kind, _ sight: some HoldingsSight) -> Holdings.Subject {
    Holdings.Subject(device: sight.device, kind: kind)
  }

  // MARK: Sessions

  /// Both sides take records and questions.
  package mutating func live(_ id: SessionID, instance: UUIDValue, isDialer: Bool, _ now: MonotonicTime) {
    peers[id] = HoldingsPeer(
      instance: instance, levelRevision: levels[instance] ?? 0,
      firstComparison: isDialer ? now : now.advanced(byMilliseconds: HoldingsRules.listenerMilliseconds), now: now)
    looks.addUnheard()
  }

  package mutating func closed(_ id: SessionID) { peers[id] = nil }
  package var hasPeers: Bool { !peers.isEmpty }
  package func knows(_ id: SessionID) -> Bool { peers[id] != nil }

  /// What is common with peers may have changed.
  package mutating func scopeMoved() {
    for id in peers.keys { peers[id]?.isDue = true }
    looks.addUnheard()
  }

  mutating func setLevel(_ id: SessionID) {
    guard let peer = peers[id] else { return }
    peers[id]?.levelRevision = book.revision
    peers[id]?.unequalInRow = 0
    peers[id]?.isDue = false
    if levels[peer.instance] == nil, levels.count >= HoldingsExchange.levelLimit,
      let oldest = levels.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })?.key
    {
      levels[oldest] = nil
    }
    levels[peer.instance] = book.revision
  }

  /// What this side takes to be known to the peer led to nothing: all is listed the next time.
  mutating func forgetLevel(_ id: SessionID) {
    guard let peer = peers[id] else { return }
    peers[id]?.levelRevision = 0
    levels[peer.instance] = nil
  }

  // MARK: What happens

  /// So many bytes of changes came to be held.
  package mutating func grew(_ partition: PartitionID, _ name: PartitionName, byteCount: Int) {
    let bytes = words[partition]?[.received]?.unspokenBytes ?? 0
    words[partition, default: [:]][.received, default: OwnWord()].unspokenBytes =
      bytes.addingReportingOverflow(byteCount).overflow ? .max : bytes + byteCount
    looks.add(partition, name)
  }

  /// Chains of these partitions do not read as a whole any more, or do again.
  package mutating func damageMoved(_ names: [PartitionName], _ sight: some HoldingsSight) {
    for name in names {
      let partition = sight.id(of: name)
      let said = book[partition, ownSubject(.received, sight)]?.holdings.vector ?? VersionVector()
      let held = sight.held(partition, name)?.vector ?? VersionVector()
      if said.entries.keys.contains(where: { held[$0] == nil }) {
        demandCorrection(of: partition, name)
      }
      noteUnsaid(partition, name, sight)
    }
  }

  /// All that reads may be said from now on.
  package mutating func logScrubbed(_ sight: some HoldingsSight) {
    for (partition, name) in sight.partitions { noteUnsaid(partition, name, sight) }
  }

  /// A correction is written down also where nobody is there to be told: a start must not find the word that is wrong.
  package var hasCorrections: Bool { !corrections.isEmpty }

  mutating func demandCorrection(of partition: PartitionID, _ name: PartitionName) {
    words[partition]?[.received]?.demandCorrection()
    corrections.insert(partition)
    looks.add(partition, name)
  }

  package mutating func tick(_ sight: some HoldingsSight) -> [Directive] {
    var out: [Directive] = []
    for (partition, name) in looks.takeDue(sight.now) {
      looks.put(partition, name, speakIfDue(partition, name, sight, &out))
    }
    for id in peers.keys.sorted() { compareIfDue(id, sight, &out) }
    return out
  }

  /// The records are on disk.
  package mutating func kept(
    _ records: [(record: KeptHoldings, source: SessionID?)], _ sight: some HoldingsSight
  ) -> [Directive] {
    var out: [Directive] = []
    for (kept, source) in records {
      let partition = sight.id(of: kept.holdings.partition)
      // What others pass on may be old, whenever it came.
      let isFirstHand =
        kept.holdings.device == sight.device || source.map { sight.isWith(kept.holdings.device, $0) } ?? true
      guard put(kept, in: partition, sight, heardAt: isFirstHand ? sight.now : nil) else { continue }
      let isOwn = kept.holdings.device == sight.device && source == nil
      if isOwn { words[partition]?[kept.holdings.kind]?.spoke(kept.holdings) }
      if words[partition]?[.received]?.mustCorrect != true { corrections.remove(partition) }
      // A copy of this device may have said another thing of the backend: only now it stands, to be compared with the reading.
      if kept.holdings.device == sight.device, source != nil { looks.add(partition, kept.holdings.partition) }
      for id in peers.keys.sorted()
      where id != source && sight.isInScope(id, partition, kept.holdings.partition) {
        if isOwn { tell(id, partition, kept.holdings.subject, &out) } else { peers[id]?.isDue = true }
      }
    }
    return out
  }

  package mutating func received(_ id: SessionID, _ message: HoldingsMessage, _ sight: some HoldingsSight)
    -> [Directive]
  {
    guard peers[id] != nil else { return [] }
    var out: [Directive] = []
    switch message {
    case .records(let items): for item in items { take(item, id, sight, &out) }
    case .question(let question):
      guard peers[id]?.allowance.take(sight.now, rules) == true else { return [] }
      switch question {
      case .sum(let sum, let isAnswer): receiveSum(id, sum, isAnswer: isAnswer, sight, &out)
      case .list(let list): receiveList(id, list, sight, &out)
      case .known(let known, let wantsBack): receiveKnown(id, known, wantsBack: wantsBack, sight, &out)
      case .fresh(let names): for name in names { answerFresh(id, name, sight, &out) }
      }
    }
    return out
  }

  /// Asks peers to say now what they hold of these partitions, and compares at once.
  package mutating func ask(_ names: [PartitionName], _ sight: some HoldingsSight) -> [Directive] {
    var out: [Directive] = []
    for id in peers.keys.sorted() {
      let meant = names.filter { sight.isInScope(id, sight.id(of: $0), $0) }
      for start in stride(from: 0, to: meant.count, by: HoldingsQuestion.freshLimit) {
        let part = meant[start..<min(start + HoldingsQuestion.freshLimit, meant.count)]
        out.append(.send(id, .question(.fresh(Array(part)))))
      }
      guard !meant.isEmpty else { continue }
      peers[id]?.isDue = true
      peers[id]?.nextComparison = sight.now.advanced(byMilliseconds: rules.askedPauseMilliseconds)
    }
    return out
  }

  // MARK: The book

  private mutating func put(
    _ kept: KeptHoldings, in partition: PartitionID, _ sight: some HoldingsSight, heardAt: MonotonicTime? = nil
  ) -> Bool {
    book.put(kept, in: partition, heardAt: heardAt) { sight.precedes($0, $1) }
  }

  mutating func sum(of partition: PartitionID, _ sight: some HoldingsSight) -> UInt64 {
    book.sum(of: partition, sight.hash)
  }
}

/// Intervals and shares; tests and worlds shorten them.
package struct HoldingsRules: Sendable {
  /// Between two own records of one partition that nobody asked for.
  package var wordMilliseconds: UInt64 = 600_000
  /// The changes that a record newly speaks of have at least so many times the bytes that telling it takes.
  package var share = 50
  /// Between two records of one partition, whoever asks.
  package var askedMilliseconds: UInt64 = 5_000
  /// Who asks hears a record anew although nothing has changed, so that its age shows that the device is there.
  package var renewMilliseconds: UInt64 = 60_000
  /// So long a word may be given of what was read in the backend; a forwarder reads it again in half that time.
  package var readingMilliseconds: UInt64 = 1_200_000
  /// Until what was asked for is compared.
  package var askedPauseMilliseconds: UInt64 = 500
  /// Between two comparisons on one session, twice as long with each that leaves both sides different.
  package var compareMilliseconds: UInt64 = 30_000
  /// Questions of one session that are answered in ``allowanceMilliseconds``.
  package var allowance = 64
  package var allowanceMilliseconds: UInt64 = 30_000

  /// Of a change whose bytes were not counted, since it came before this start.
  static let leastChangeBytes: UInt64 = 64
  /// So long a listener waits for the dialer's first comparison.
  static let listenerMilliseconds: UInt64 = 5_000
  /// Frame, TLS record and message around an item.
  static let messageBytes = 40

  package init() {}
}

/// What the exchange sees of its node.
package protocol HoldingsSight {
  var now: MonotonicTime { get }
  var wallMilliseconds: Int64 { get }
  var device: PublicKey { get }
  var fleet: FleetID { get }
  var hash: HashFunction { get }
  /// ``Surroundings/knowsDamage``.
  var knowsDamage: Bool { get }
  /// Partitions that are here.
  var partitions: [(PartitionID, PartitionName)] { get }
  func id(of name: PartitionName) -> PartitionID
  func isMember(_ device: PublicKey) -> Bool
  /// Whether the session's peer is this device.
  func isWith(_ device: PublicKey, _ session: SessionID) -> Bool
  func isInScope(_ session: SessionID, _ partition: PartitionID, _ name: PartitionName) -> Bool
  /// What is here of it, or will be before anything is told; nil where it has not begun.
  func held(_ partition: PartitionID, _ name: PartitionName) -> HeldVector?
  func signedBytes(of holdings: Holdings) -> [UInt8]
  func sign(_ message: [UInt8]) -> Signature
  func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool
}

package struct HeldVector: Sendable {
  package let vector: VersionVector
  package let ownLast: Holdings.OwnLast?
  package init(vector: VersionVector, ownLast: Holdings.OwnLast?) { (self.vector, self.ownLast) = (vector, ownLast) }
}

extension HoldingsSight {
  /// The greater number stands; of two with one number that whose signed bytes have the lower hash.
  func precedes(_ a: Holdings, _ b: Holdings) -> Bool {
    if a.number != b.number { return a.number < b.number }
    return a != b && Digest.of(signedBytes(of: b), hash) < Digest.of(signedBytes(of: a), hash)
  }
}
