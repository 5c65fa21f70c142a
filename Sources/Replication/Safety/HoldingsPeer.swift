/// A session on which both sides speak of holdings.
struct HoldingsPeer: Sendable {
  let instance: UUIDValue
  /// Numbers of own records that the peer has for certain: it was told them, or named them.
  var told: [PartitionID: [Holdings.Kind: UInt64]] = [:]
  /// The book's revision when both were last known to be level.
  var levelRevision: UInt64
  /// Something may be known here or there alone.
  var isDue = true
  /// The peer takes something to be known here that is not.
  var lacks = false
  var nextComparison: MonotonicTime
  /// Comparisons on end that found a difference.
  var unequalInRow: UInt64 = 0
  var allowance: Allowance

  init(instance: UUIDValue, levelRevision: UInt64, firstComparison: MonotonicTime, now: MonotonicTime) {
    (self.instance, self.levelRevision, nextComparison) = (instance, levelRevision, firstComparison)
    allowance = Allowance(since: now)
  }

  /// How many questions were answered lately.
  struct Allowance: Sendable {
    var since: MonotonicTime
    var count = 0

    mutating func take(_ now: MonotonicTime, _ rules: HoldingsRules) -> Bool {
      if now.millisecondsSince(since) >= rules.allowanceMilliseconds { (since, count) = (now, 0) }
      count += 1
      return count <= rules.allowance
    }
  }
}

/// What this device has said, and has to say, of one partition in one kind.
struct OwnWord: Sendable {
  /// The greatest number that was given out, or seen on a record of this device.
  private(set) var number: UInt64 = 0
  var issuedAt: MonotonicTime?
  /// Bytes of changes that no own record speaks of yet.
  var unspokenBytes = 0
  /// Those of them that the record speaks of which is being stored.
  private var speaking = 0
  /// A record of this device says more than is here: of this store before it was put back or damaged, or of a copy. It must
  /// not stand.
  private(set) var mustCorrect = false
  /// The number of the record that corrects it, until that is on disk.
  private var correction: UInt64?
  /// What the backend has, as it was read there, and when.
  private(set) var backend: ReadBack?
  /// It was read since the last record about it was signed.
  private(set) var isReadAnew = false

  struct ReadBack: Sendable {
    let vector: VersionVector
    let at: MonotonicTime
  }

  mutating func read(_ vector: VersionVector, _ now: MonotonicTime) {
    (backend, isReadAnew) = (ReadBack(vector: vector, at: now), true)
  }

  /// Greater than all that this store knows of. The wall clock carries it over what a store has forgotten that was put
  /// back; where that clock went back, too, the record itself comes back from a peer, and is seen.
  func next(_ wallMilliseconds: Int64) -> UInt64 {
    let wall = min(UInt64(clamping: wallMilliseconds), Holdings.numberLimit / 2)
    return min(max(number + 1, wall), Holdings.numberLimit)
  }

  mutating func issue(_ number: UInt64, _ now: MonotonicTime) {
    (self.number, issuedAt) = (max(self.number, number), now)
    if mustCorrect { correction = number }
    (speaking, isReadAnew) = (unspokenBytes, false)
  }

  mutating func demandCorrection() { (mustCorrect, correction) = (true, nil) }

  /// The record is on disk.
  mutating func spoke(_ holdings: Holdings) {
    note(holdings)
    if correction == holdings.number { (mustCorrect, correction) = (false, nil) }
    unspokenBytes -= min(speaking, unspokenBytes)
    speaking = 0
  }

  mutating func note(_ holdings: Holdings) { number = max(number, holdings.number) }
}
