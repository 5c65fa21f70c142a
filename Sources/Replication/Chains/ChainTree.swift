/// The known changes of one chain above its trunk: a tree where the chain is forked, a list where it is held.
///
/// A device may fill tens of thousands of places in it, on every node. So each change lies here once, in one array, and is found
/// by its hash and by what it follows on through tables of places.
struct ChainTree: Sendable {
  struct Node: Sendable {
    let sequence: UInt64
    let previous: Digest
    /// False where only the header is known.
    let hasContent: Bool
    let facts: ChangeFacts
  }

  /// The place after one change. Changes that share a slot are a fork (rule C5).
  struct Slot: Hashable {
    let sequence: UInt64
    let previous: Digest
  }

  private var records: [Record] = []
  private var byHash = PlaceTable()
  /// The first change of each slot.
  private var bySlot = PlaceTable()
  /// What only some changes say, by hash.
  private var details: [Digest: Details] = [:]
  /// Slots with more than one change. Few: what asks for branches must not look at every slot of a long chain.
  private(set) var forks: Set<Slot> = []
  /// Changes on which nothing follows that is known.
  private(set) var ends: Set<Digest> = []
  /// What all details take, as so many changes more.
  private(set) var weight = 0

  var isEmpty: Bool { records.isEmpty }
  var count: Int { records.count }

  // MARK: Looking up

  private func place(of hash: Digest) -> Int? { byHash.first(hash.hashValue) { records[$0].hash == hash } }

  private func place(of slot: Slot) -> Int? { bySlot.first(slot.hashValue) { records[$0].slot == slot } }

  subscript(hash: Digest) -> Node? { place(of: hash).map(node) }

  private func node(at place: Int) -> Node {
    let record = records[place]
    let detail = record.hasDetails ? details[record.hash] : nil
    return Node(
      sequence: record.sequence, previous: record.previous, hasContent: record.hasContent,
      facts: ChangeFacts(
        recognition: record.recognition, ownDocument: detail?.ownDocument, origin: detail?.origin))
  }

  func contains(_ hash: Digest) -> Bool { place(of: hash) != nil }
  func hasContent(_ hash: Digest) -> Bool { place(of: hash).map { records[$0].hasContent } ?? false }

  /// Where two changes share 16 bytes of hash, the lower stands.
  func find(_ position: ChainPosition) -> Digest? {
    var lowest: Digest?
    // A hash value is made of those 16 bytes.
    let like = Digest(words: (position.tip.high, position.tip.low, 0, 0))
    _ = byHash.first(like.hashValue) { place in
      let hash = records[place].hash
      if hash.tip == position.tip { lowest = min(hash, lowest ?? hash) }
      return false
    }
    return lowest.flatMap { place(of: $0) }.flatMap {
      records[$0].sequence == position.sequence ? records[$0].hash : nil
    }
  }

  /// In hash order.
  func following(_ hash: Digest, at sequence: UInt64) -> [Digest] {
    var (found, next): ([Digest], Int?) = ([], place(of: Slot(sequence: sequence, previous: hash)))
    while let place = next {
      found.append(records[place].hash)
      next = records[place].next
    }
    return found
  }

  func firstFollowing(_ hash: Digest, at sequence: UInt64) -> Digest? {
    place(of: Slot(sequence: sequence, previous: hash)).map { records[$0].hash }
  }

  /// The change itself or one before it; nil where that is not in the tree.
  func ancestor(of hash: Digest, at sequence: UInt64) -> Digest? {
    var current = hash
    while let place = place(of: current) {
      let record = records[place]
      guard record.sequence > sequence else { return record.sequence == sequence ? current : nil }
      current = record.previous
    }
    return nil
  }
}

// MARK: - One change

extension ChainTree {
  private struct Record: Sendable {
    let hash: Digest
    let previous: Digest
    let sequence: UInt64
    /// The next of its slot in hash order, and one; 0 behind the last.
    private var nextAndOne: UInt32 = 0
    fileprivate var recognition = ChangeFacts.Recognition.known
    fileprivate var hasContent = false
    fileprivate var hasDetails = false

    init(_ hash: Digest, at slot: Slot) { (self.hash, previous, sequence) = (hash, slot.previous, slot.sequence) }

    var slot: Slot { Slot(sequence: sequence, previous: previous) }

    var next: Int? {
      get { nextAndOne > 0 ? Int(nextAndOne) - 1 : nil }
      set { nextAndOne = newValue.map { UInt32($0 + 1) } ?? 0 }
    }
  }

  private struct Details: Sendable {
    let ownDocument: OwnDocument?
    let origin: ChangeOrigin?

    /// An author chooses how many fields a change names, and how long their names are.
    var weight: Int {
      guard let ownDocument else { return 1 }
      let names = ownDocument.otherFields.reduce(ownDocument.user.utf8.count) { $0 + $1.utf8.count + 48 }
      return 1 + names / ChainTree.recordByteCount
    }
  }

  /// What one change takes in memory, with its places in the tables and on a branch.
  static let recordByteCount = 128
}

// MARK: - Adding and taking out

extension ChainTree {
  /// Adds a change, or content to a known one. `facts`: nil for a header alone. True if its slot now holds a fork.
  mutating func insert(_ hash: Digest, at slot: Slot, facts: ChangeFacts?) -> Bool {
    if let place = place(of: hash) {
      if let facts { note(facts, at: place) }
      return false
    }
    let place = records.count
    records.append(Record(hash, at: slot))
    if let facts { note(facts, at: place) }
    byHash.insert(place, hash.hashValue) { [records] in records[$0].hash.hashValue }
    ends.remove(slot.previous)
    if firstFollowing(hash, at: slot.sequence + 1) == nil { ends.insert(hash) }
    let isFork = link(place, slot)
    if isFork { forks.insert(slot) }
    return isFork
  }

  private mutating func note(_ facts: ChangeFacts, at place: Int) {
    records[place].hasContent = true
    records[place].recognition = facts.recognition
    let says = facts.ownDocument != nil || facts.origin != nil
    if says || records[place].hasDetails {
      set(says ? Details(ownDocument: facts.ownDocument, origin: facts.origin) : nil, records[place].hash)
    }
    records[place].hasDetails = says
  }

  private mutating func set(_ new: Details?, _ hash: Digest) {
    weight += (new?.weight ?? 0) - weight(of: hash)
    details[hash] = new
  }

  /// What the details of a change take, as so many changes more.
  func weight(of hash: Digest) -> Int { details.isEmpty ? 0 : details[hash]?.weight ?? 0 }

  /// Puts a change among those of its slot. True where there are others.
  private mutating func link(_ place: Int, _ slot: Slot) -> Bool {
    guard let first = self.place(of: slot) else {
      bySlot.insert(place, slot.hashValue) { [records] in records[$0].slot.hashValue }
      return false
    }
    let hash = records[place].hash
    if hash < records[first].hash {
      records[place].next = first
      bySlot.move(first, slot.hashValue, to: place)
      return true
    }
    var before = first
    while let next = records[before].next, records[next].hash < hash { before = next }
    records[place].next = records[before].next
    records[before].next = place
    return true
  }

  /// Takes out a change that went into the trunk.
  mutating func remove(_ hash: Digest) -> Node? {
    guard let place = place(of: hash) else { return nil }
    let node = node(at: place)
    let slot = Slot(sequence: node.sequence, previous: node.previous)
    unlink(place, slot)
    byHash.remove(place, hash.hashValue) { [records] in records[$0].hash.hashValue }
    if records[place].hasDetails { set(nil, hash) }
    ends.remove(hash)
    fill(place)
    return node
  }

  private mutating func unlink(_ place: Int, _ slot: Slot) {
    guard let first = self.place(of: slot) else { return }
    if first != place {
      var before = first
      while let next = records[before].next, next != place { before = next }
      records[before].next = records[place].next
    } else if let next = records[place].next {
      bySlot.move(place, slot.hashValue, to: next)
    } else {
      bySlot.remove(place, slot.hashValue) { [records] in records[$0].slot.hashValue }
    }
    if following(slot.previous, at: slot.sequence).count < 2 { forks.remove(slot) }
  }

  /// The last one takes the place of one that has gone.
  private mutating func fill(_ place: Int) {
    let last = records.count - 1
    if place < last {
      let record = records[last]
      if self.place(of: record.slot) == last {
        bySlot.move(last, record.slot.hashValue, to: place)
      } else if var before = self.place(of: record.slot) {
        while let next = records[before].next, next != last { before = next }
        records[before].next = place
      }
      byHash.move(last, record.hash.hashValue, to: place)
      records[place] = record
    }
    records.removeLast()
    // Memory of what was here for a while is given back.
    if records.count * 8 < records.capacity, records.capacity > 1_024 { records = records.map { $0 } }
  }
}

// MARK: - Branches

extension ChainTree {
  /// A change beside the branch that was chosen.
  struct Beside: Sendable {
    let hash: Digest
    let sequence: UInt64
    let hasContent: Bool
  }

  private func beside(_ place: Int) -> Beside {
    Beside(hash: records[place].hash, sequence: records[place].sequence, hasContent: records[place].hasContent)
  }

  /// Known changes off a branch that begins above `end`: those of other branches, and those that nothing here leads to; in no
  /// order.
  ///
  /// Costs what lies there, unless some of it hangs in the air.
  func nodes(beside branch: [Digest], above end: UInt64) -> [Beside] {
    guard records.count > branch.count else { return [] }
    func isChosen(_ hash: Digest, _ sequence: UInt64) -> Bool {
      guard sequence > end, case let index = Int(sequence - end) - 1, index < branch.count else { return false }
      return branch[index] == hash
    }
    var (found, seen): ([Beside], Set<UInt32>) = ([], [])
    for slot in forks {
      var waiting = following(slot.previous, at: slot.sequence).filter { !isChosen($0, slot.sequence) }
      while let hash = waiting.popLast() {
        guard let place = place(of: hash), seen.insert(UInt32(place)).inserted else { continue }
        found.append(beside(place))
        waiting += following(hash, at: records[place].sequence + 1)
      }
    }
    guard records.count > branch.count + found.count else { return found }
    return records.indices.filter { !isChosen(records[$0].hash, records[$0].sequence) }.map(beside)
  }

  /// The branch that counts above a trunk's end (rule C6): through the bound if its headers join the trunk; for the
  /// rest, at each fork, the lowest hash, whether its content is here or not.
  func branch(above end: (sequence: UInt64, hash: Digest), through bound: ChainPosition) -> [Digest] {
    var branch = find(bound).flatMap { path(to: $0, above: end) } ?? []
    var (sequence, hash) = (end.sequence + UInt64(branch.count), branch.last ?? end.hash)
    while let next = firstFollowing(hash, at: sequence + 1) {
      branch.append(next)
      (sequence, hash) = (sequence + 1, next)
    }
    return branch
  }

  /// Nil where the headers do not join the trunk.
  private func path(to hash: Digest, above end: (sequence: UInt64, hash: Digest)) -> [Digest]? {
    var path: [Digest] = []
    var (current, expected) = (hash, place(of: hash).map { records[$0].sequence })
    while let place = place(of: current), records[place].sequence == expected {
      path.append(current)
      (current, expected) = (records[place].previous, records[place].sequence - 1)
    }
    return current == end.hash && expected == end.sequence ? path.reversed() : nil
  }
}
