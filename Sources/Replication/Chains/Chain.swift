/// What a node knows of one chain, and how much of it counts (rules C4–C6).
///
/// Every known change at or below the trunk's end is in the trunk; every other one is in the tree. Whatever would put a
/// second change beside the trunk needs the trunk unfolded first.
struct Chain: Sendable {
  private(set) var trunk: ChainTrunk
  /// What is known above the trunk, where anything is; at most one. Nodes hold hundreds of thousands of chains that have
  /// nothing there, and that are limited by nothing: neither takes memory then.
  private var upper: [Upper] = []
  private var exceptional: [ChainLimits] = []
  /// Ends of runs that came lately, so that what several peers send at once is known again without reading storage.
  private var recent: [ChainPosition] = []

  static let recentLimit = 16
  /// Known changes off the chosen branch: a thousand runs of an honest clone stay below. What an author signs beyond this
  /// or ``rivalLimit`` is learned only where it changes the choice or the proof of a fork.
  static let sideLimit = 65_536
  /// Known changes after one and the same change: clones of one disk are few.
  static let rivalLimit = 64

  init(trunk: ChainTrunk, limits: ChainLimits) {
    self.trunk = trunk
    self.limits = limits
  }

  var isForked: Bool { forkPoint != nil }
  /// Headers known on the chosen branch.
  var length: UInt64 { trunk.sequence + UInt64(branch.count) }

  /// The chosen branch's hash. Nil inside the trunk, where storage knows it, and above the branch.
  func hash(at sequence: UInt64) -> Digest? {
    guard sequence > trunk.sequence else { return sequence == trunk.sequence ? trunk.hash : nil }
    return sequence <= length ? branch[Int(sequence - trunk.sequence) - 1] : nil
  }

  func position(at sequence: UInt64) -> ChainPosition? {
    guard sequence > 0 else { return nil }
    return hash(at: sequence).map { ChainPosition(sequence: sequence, tip: $0.tip) }
  }

  /// Trunk, what counts, what is received and what is known lie in this order.
  var isInOrder: Bool { trunk.sequence <= accepted && accepted <= received && received <= length }

  /// Less is received or counts than these, and nothing explains it.
  func hasFallen(below before: (received: UInt64, accepted: UInt64)) -> Bool {
    (received < before.received || accepted < before.accepted) && !isForked && limits == .open
  }

  func contains(_ hash: Digest) -> Bool { hash == trunk.hash || tree.contains(hash) }

  func hasContent(_ hash: Digest) -> Bool { hash == trunk.hash || tree.hasContent(hash) }
}

// MARK: - Above the trunk

extension Chain {
  private struct Upper: Sendable {
    var tree = ChainTree()
    var forkPoint: UInt64?
    var branch: [Digest] = []
    var received: UInt64
    var accepted: UInt64
    /// ``ChainTree/weight`` of what counts.
    var acceptedWeight = 0
    var holdReason: HoldReason?
  }

  private mutating func rise() {
    if upper.isEmpty { upper = [Upper(received: trunk.sequence, accepted: trunk.sequence)] }
  }

  /// Everything went into the trunk.
  private mutating func settleDown() {
    if tree.isEmpty, branch.isEmpty, forkPoint == nil { upper = [] }
  }

  var limits: ChainLimits {
    get { exceptional.first ?? .open }
    set { exceptional = newValue == .open ? [] : [newValue] }
  }

  private(set) var tree: ChainTree {
    get { upper.first?.tree ?? ChainTree() }
    _modify {
      rise()
      yield &upper[0].tree
    }
  }

  /// Lowest sequence before any known fork.
  private(set) var forkPoint: UInt64? {
    get { upper.first?.forkPoint }
    set {
      rise()
      upper[0].forkPoint = newValue
    }
  }

  /// The chosen branch above the trunk, as far as headers are known.
  private(set) var branch: [Digest] {
    get { upper.first?.branch ?? [] }
    _modify {
      rise()
      yield &upper[0].branch
    }
  }

  /// Contiguous content on the chosen branch.
  private(set) var received: UInt64 {
    get { upper.first?.received ?? trunk.sequence }
    set { if !upper.isEmpty { upper[0].received = newValue } }
  }

  private(set) var accepted: UInt64 {
    get { upper.first?.accepted ?? trunk.sequence }
    set { if !upper.isEmpty { upper[0].accepted = newValue } }
  }

  /// Why the first change above ``accepted`` is held.
  private var holdReason: HoldReason? {
    get { upper.first?.holdReason }
    set { if !upper.isEmpty { upper[0].holdReason = newValue } }
  }
}

// MARK: - Learning

extension Chain {
  enum TrunkMatch { case agrees, differs, unknown }

  /// Does the run repeat the trunk where it reaches into it? A hash covers all before it, so one place decides.
  func matchesTrunk(_ run: RunSummary) -> TrunkMatch {
    guard run.first <= trunk.sequence else { return .agrees }
    if let hash = run.hash(at: trunk.sequence) { return hash == trunk.hash ? .agrees : .differs }
    guard let known = recent.last(where: { $0.sequence == run.last }) else { return .unknown }
    return known.tip == run.hashes.last?.tip ? .agrees : .differs
  }

  /// Advances the trunk by a run that follows it and counts as a whole: the usual case, in constant time and memory.
  mutating func extendTrunk(by run: RunSummary) -> Bool {
    guard tree.isEmpty, run.first == trunk.sequence + 1, run.hashBefore == trunk.hash, let hash = run.hashes.last,
      run.last <= min(limits.bound.sequence, limits.known)
    else { return false }
    var documents = run.facts.isEmpty ? ChainTrunk.Documents.any : trunk.documents
    for (index, facts) in run.facts.enumerated() {
      guard facts.recognition == .known, facts.origin == nil,
        limits.fitsDocumentRule(facts.ownDocument, at: run.first + UInt64(index))
      else { return false }
      documents = documents.adding(facts.ownDocument)
    }
    guard !run.facts.isEmpty || run.last <= limits.free else { return false }
    trunk = ChainTrunk(sequence: run.last, hash: hash, documents: documents)
    (received, accepted) = (run.last, run.last)
    remember(run)
    return true
  }

  /// Adds what lies above the trunk. The run must agree with the trunk. True where another branch begins with it.
  @discardableResult
  mutating func insert(_ run: RunSummary, content: Bool) -> Bool {
    var (previous, beginsBranch) = (run.hashBefore, false)
    for (index, hash) in run.hashes.enumerated() {
      let sequence = run.first + UInt64(index)
      if sequence > trunk.sequence {
        let slot = ChainTree.Slot(sequence: sequence, previous: previous)
        if tree.insert(hash, at: slot, facts: content ? run.facts(at: index) : nil) {
          forkPoint = min(sequence - 1, forkPoint ?? .max)
          beginsBranch = true
        }
      }
      previous = hash
    }
    if content { remember(run) }
    return beginsBranch
  }

  /// Room for a run whose author has filled the chain with branches?
  func admits(_ run: RunSummary) -> Bool {
    guard let index = run.hashes.firstIndex(where: { !contains($0) }) else { return true }
    let previous = index == 0 ? run.hashBefore : run.hashes[index - 1]
    let rivals = tree.following(previous, at: run.first + UInt64(index))
    let isFull = tree.count - branch.count >= Chain.sideLimit && previous != (branch.last ?? trunk.hash)
    guard isFull || rivals.count >= Chain.rivalLimit else { return true }
    return rivals.dropFirst().first.map { run.hashes[index] < $0 } ?? false
  }

  /// Everything that is known of the chosen branch is here, and the run goes on from its end: nothing else can be chosen
  /// for it.
  func endsBefore(_ run: RunSummary) -> Bool {
    guard run.first == length + 1, received == length, run.hashBefore == branch.last ?? trunk.hash else { return false }
    let before = [run.hashBefore] + run.hashes
    return before.enumerated().allSatisfy { tree.following($1, at: run.first + UInt64($0)).isEmpty }
  }

  /// Adds a run that ``endsBefore(_:)`` allows, and counts it. Costs that run alone: a chain that is held, or was forked once,
  /// may go on for as long as it likes.
  mutating func extend(by run: RunSummary, _ replica: ReplicaID) -> AcceptanceChange? {
    let (before, wasHeld) = (accepted, accepted < received)
    insert(run, content: true)
    branch += run.hashes
    received = run.last
    if !wasHeld { accept(from: before) }
    guard accepted > before else { return nil }
    return AcceptanceChange(
      replica: replica, shared: before, lost: [], gained: Array(run.hashes.prefix(Int(accepted - before))))
  }

  private mutating func remember(_ run: RunSummary) {
    guard let tip = run.hashes.last?.tip else { return }
    if recent.count == Chain.recentLimit { recent.removeFirst() }
    recent.append(ChainPosition(sequence: run.last, tip: tip))
  }
}

// MARK: - Settling

extension Chain {
  /// Chooses the branch anew and counts again what is accepted. Nil where nothing changed.
  mutating func settle(_ replica: ReplicaID) -> AcceptanceChange? {
    guard !upper.isEmpty else { return nil }
    let before = branch.prefix(Int(accepted - trunk.sequence))
    branch = tree.branch(above: (trunk.sequence, trunk.hash), through: limits.branch)
    received = trunk.sequence + UInt64(branch.prefix(while: tree.hasContent).count)
    accept(from: trunk.sequence)
    let after = branch.prefix(Int(accepted - trunk.sequence))
    guard before != after else { return nil }
    let shared = zip(before, after).prefix { $0 == $1 }.count
    return AcceptanceChange(
      replica: replica, shared: trunk.sequence + UInt64(shared), lost: Array(before.dropFirst(shared)),
      gained: Array(after.dropFirst(shared)))
  }

  /// Changes that memory holds although they do not count, and what their details take.
  var heldCount: Int {
    guard let upper = upper.first else { return 0 }
    return upper.tree.count - Int(upper.accepted - trunk.sequence) + upper.tree.weight - upper.acceptedWeight
  }

  /// Counts what is received above `start`, as far as nothing holds it.
  private mutating func accept(from start: UInt64) {
    guard !upper.isEmpty else { return }
    (accepted, holdReason) = (received, nil)
    if start == trunk.sequence { upper[0].acceptedWeight = 0 }
    for sequence in (start..<received).lazy.map({ $0 + 1 }) {
      holdReason = reason(against: sequence)
      if holdReason != nil {
        accepted = sequence - 1
        break
      }
      upper[0].acceptedWeight += hash(at: sequence).map(tree.weight) ?? 0
    }
  }

  private func reason(against sequence: UInt64) -> HoldReason? {
    guard sequence <= limits.bound.sequence else { return limits.reason }
    guard let facts = hash(at: sequence).flatMap({ tree[$0]?.facts }) else { return nil }
    if facts.recognition != .known { return .unknownKind }
    if sequence > limits.known { return limits.lack }
    return limits.fitsDocumentRule(facts.ownDocument, at: sequence) ? nil : .documentRule
  }

  /// Received content that does not count, with the reason.
  ///
  /// - Parameter rooted: changes to which something leads that is here; nil: all.
  func held(_ replica: ReplicaID, rooted: Set<Digest>? = nil) -> [HeldChange] {
    let above = branch.prefix(Int(received - trunk.sequence)).dropFirst(Int(accepted - trunk.sequence))
    var held = above.enumerated().map { index, hash in
      HeldChange(
        dot: Dot(replica: replica, sequence: accepted + 1 + UInt64(index)), hash: hash,
        reason: index == 0 ? holdReason ?? .afterHeld : .afterHeld)
    }
    for node in beside where node.hasContent {
      let dot = Dot(replica: replica, sequence: node.sequence)
      let reason = rooted?.contains(node.hash) == false ? HoldReason.gap : .otherBranch
      held.append(HeldChange(dot: dot, hash: node.hash, reason: reason))
    }
    for hash in behindGap {
      guard let node = tree[hash], node.hasContent else { continue }
      held.append(HeldChange(dot: Dot(replica: replica, sequence: node.sequence), hash: hash, reason: .gap))
    }
    return held
  }

  /// Known changes off the chosen branch.
  var beside: [ChainTree.Beside] { tree.nodes(beside: branch, above: trunk.sequence) }

  /// The chosen branch's changes above the first whose content is not here.
  private var behindGap: ArraySlice<Digest> { branch.dropFirst(Int(received - trunk.sequence)) }

  /// Changes with content beside the chosen branch, or behind a gap on it.
  var apartCount: Int {
    beside.count(where: \.hasContent) + behindGap.count { tree.hasContent($0) }
  }
}

// MARK: - Folding

extension Chain {
  /// Moves into the trunk what needs no memory of its own: accepted changes below every other known one. `pin`: lowest
  /// sequence that must stay in the tree.
  mutating func fold(below pin: UInt64?) {
    let countable = min(accepted, (pin ?? .max) - 1)
    guard !branch.isEmpty, forkPoint != trunk.sequence, countable > trunk.sequence else { return }
    let end = min(countable, lowestOffBranch - 1)
    guard end > trunk.sequence else { return }
    let count = Int(end - trunk.sequence)
    for hash in branch.prefix(count) {
      upper[0].acceptedWeight -= tree.weight(of: hash)
      guard let node = tree.remove(hash) else { continue }
      trunk = ChainTrunk(
        sequence: node.sequence, hash: hash, documents: trunk.documents.adding(node.facts.ownDocument))
    }
    branch.removeFirst(count)
    settleDown()
  }

  private var lowestOffBranch: UInt64 { beside.lazy.map(\.sequence).min() ?? .max }

  /// Takes the trunk's upper part apart again, down to `lowest` at least. `runs`: the stored runs of that part; those of
  /// other branches may be among them. Nothing counts otherwise for it: the next ``settle(_:)`` looks again.
  mutating func unfold(from lowest: UInt64, _ runs: [RunSummary]) throws(UnfoldError) {
    guard trunk.sequence >= lowest else { return }
    var (sequence, hash) = (trunk.sequence, trunk.hash)
    var descending: [(hash: Digest, sequence: UInt64, previous: Digest, facts: ChangeFacts)] = []
    for run in runs.sorted(by: { $0.first > $1.first }) where sequence >= lowest && run.hash(at: sequence) == hash {
      for index in (0...Int(sequence - run.first)).reversed() {
        let previous = index > 0 ? run.hashes[index - 1] : run.hashBefore
        descending.append((run.hashes[index], run.first + UInt64(index), previous, run.facts(at: index)))
      }
      (sequence, hash) = (run.first - 1, run.hashBefore)
    }
    guard sequence < lowest else { throw .storedRunsDoNotReachTrunk }
    let weightBefore = tree.weight
    for change in descending {
      let slot = ChainTree.Slot(sequence: change.sequence, previous: change.previous)
      _ = tree.insert(change.hash, at: slot, facts: change.facts)
    }
    trunk = ChainTrunk(sequence: sequence, hash: hash, documents: sequence == 0 ? .none : trunk.documents)
    branch = descending.reversed().map(\.hash) + branch
    // All that was in the trunk counts.
    if !upper.isEmpty { upper[0].acceptedWeight += tree.weight - weightBefore }
    recent.removeAll()
  }
}
