/// By whom this node wants each chain to be pushed to it: one peer pushes it eagerly, and those who sent it a second time are told
/// that they need not. So there grows, for each chain, a tree over all nodes, chosen by the receivers, who alone see what comes
/// twice (Leitão, Pereira, Rodrigues: Epidemic Broadcast Trees, 2007).
struct EagerBringers: Sendable {
  struct Chain: Sendable {
    /// Who brought what is newest of it here.
    fileprivate(set) var newest: SessionID
    /// Who is to bring it; nil: nobody was chosen.
    fileprivate(set) var eager: SessionID?
    fileprivate(set) var chosenAt: MonotonicTime?
    /// Who was asked to push it where it stood still, and has brought nothing of it since.
    fileprivate var asked: SessionID?
    /// Others say that there is more than who was chosen has brought. Once one of them brings it, he is chosen no more.
    fileprivate var isInDoubt = false
    /// Who was told not to, and when.
    fileprivate(set) var lazy: [SessionID: MonotonicTime] = [:]

    fileprivate mutating func take(_ session: SessionID, at time: MonotonicTime) {
      (eager, chosenAt, lazy[session]) = (session, time, nil)
      isInDoubt = false
    }

    fileprivate func isOf(_ session: SessionID) -> Bool {
      eager == session || asked == session || lazy[session] != nil
    }
  }

  /// What a peer is to be told of a chain.
  fileprivate enum Word: Sendable { case eager, lazy, released }

  private var partitions: [PartitionID: [ReplicaID: Chain]] = [:]
  private var untold: [SessionID: [PartitionID: [ReplicaID: Word]]] = [:]
  /// When peers are told what there is to tell.
  private(set) var toldAt: MonotonicTime?

  /// Partitions of which somebody is chosen. What is beyond comes as its senders see fit.
  static let partitionLimit = PushChoices.partitionLimit
  /// Of one partition.
  static let chainLimit = PushChoice.limit
  /// Who was told not to push a chain and does so for so long is told again: he may have lost the word.
  static let againMilliseconds: UInt64 = 2_000

  subscript(replica: ReplicaID, partition: PartitionID) -> Chain? { partitions[partition]?[replica] }

  /// Somebody was chosen for them, ascending.
  func chosen(in partition: PartitionID) -> [ReplicaID] {
    partitions[partition]?.filter { $0.value.eager != nil }.keys.sorted() ?? []
  }

  var chosenPartitions: [PartitionID] { partitions.keys.sorted() }

  // MARK: What comes

  mutating func noteNew(
    _ replica: ReplicaID, of partition: PartitionID, from session: SessionID, at time: MonotonicTime
  ) {
    guard var chain = partitions[partition]?[replica] else { return begin(replica, of: partition, from: session) }
    guard chain.newest != session || chain.asked == session || chain.isInDoubt else { return }
    chain.newest = session
    if chain.asked == session {
      chain.asked = nil
      chain.take(session, at: time)
    }
    partitions[partition]?[replica] = chain
    settleDoubt(about: replica, of: partition, broughtBy: session, at: time)
  }

  /// Who was chosen has brought what is new, or somebody else has.
  mutating func settleDoubt(
    about replica: ReplicaID, of partition: PartitionID, broughtBy session: SessionID, at time: MonotonicTime
  ) {
    guard let chain = partitions[partition]?[replica], chain.isInDoubt else { return }
    partitions[partition]?[replica]?.isInDoubt = false
    if chain.eager != session { release(replica, of: partition, at: time) }
  }

  private mutating func begin(_ replica: ReplicaID, of partition: PartitionID, from session: SessionID) {
    guard partitions[partition] != nil || partitions.count < EagerBringers.partitionLimit,
      partitions[partition]?.count ?? 0 < EagerBringers.chainLimit
    else { return }
    partitions[partition, default: [:]][replica] = Chain(newest: session)
  }

  // MARK: Choosing

  /// - Parameter others: who sent it as well, or was chosen before, and need not.
  mutating func choose(
    _ bringer: SessionID, for replica: ReplicaID, of partition: PartitionID, ratherThan others: [SessionID],
    at time: MonotonicTime
  ) {
    guard var chain = partitions[partition]?[replica] else { return }
    if chain.eager != bringer {
      chain.take(bringer, at: time)
      if chain.asked == bringer { chain.asked = nil }
      put(.eager, of: replica, partition, to: bringer, at: time)
    }
    for session in others where session != bringer {
      if let told = chain.lazy[session], time.millisecondsSince(told) < EagerBringers.againMilliseconds { continue }
      if chain.asked == session { chain.asked = nil }
      chain.lazy[session] = time
      put(.lazy, of: replica, partition, to: session, at: time)
    }
    partitions[partition]?[replica] = chain
  }

  /// He is to push it beside who was chosen, who does not bring it, and takes his place with the first that he brings: until then it is his word
  /// alone that he has more.
  mutating func graft(_ session: SessionID, to replica: ReplicaID, of partition: PartitionID, at time: MonotonicTime) {
    if partitions[partition]?[replica] == nil { begin(replica, of: partition, from: session) }
    guard var chain = partitions[partition]?[replica] else { return }
    chain.asked = session
    chain.lazy[session] = nil
    partitions[partition]?[replica] = chain
    put(.eager, of: replica, partition, to: session, at: time)
  }

  /// Nobody is chosen any more: all push it as they see fit.
  mutating func release(_ replica: ReplicaID, of partition: PartitionID, at time: MonotonicTime) {
    guard let chain = partitions[partition]?[replica] else { return }
    let told = Set([chain.eager, chain.asked].compactMap { $0 }).union(chain.lazy.keys)
    for session in told { put(.released, of: replica, partition, to: session, at: time) }
    partitions[partition]?[replica] = Chain(newest: chain.newest)
  }

  /// Of what stands still those push what they have as they see fit who have named more of it. Who was chosen and is not among them has nothing
  /// that he keeps back: he stays until another brings it, since that there is more is their word alone.
  ///
  /// - Parameter holders: may hold a word that is not remembered here.
  mutating func release(
    _ holders: Set<SessionID>, from replica: ReplicaID, of partition: PartitionID, at time: MonotonicTime
  ) {
    var told = holders
    if var chain = partitions[partition]?[replica] {
      if let asked = chain.asked { told.insert(asked) }
      chain.asked = nil
      if let eager = chain.eager, told.contains(eager) { (chain.eager, chain.chosenAt) = (nil, nil) }
      // Where nobody is chosen nobody is to leave it to others.
      if chain.eager == nil { told.formUnion(chain.lazy.keys) }
      for session in told { chain.lazy[session] = nil }
      chain.isInDoubt = chain.eager != nil
      partitions[partition]?[replica] = chain
    }
    for session in told { put(.released, of: replica, partition, to: session, at: time) }
  }

  /// Whose stream is closed forgets what it was told.
  mutating func keepLazy(in partition: PartitionID, _ isOpen: (SessionID) -> Bool) {
    for (replica, chain) in partitions[partition] ?? [:] where !chain.lazy.keys.allSatisfy(isOpen) {
      partitions[partition]?[replica]?.lazy = chain.lazy.filter { isOpen($0.key) }
    }
  }

  /// The word could not be said to the session.
  mutating func forgetLazy(_ session: SessionID, in partition: PartitionID) {
    keepLazy(in: partition) { $0 != session }
  }

  mutating func forget(_ partition: PartitionID) {
    partitions[partition] = nil
    for session in untold.keys { untold[session]?[partition] = nil }
  }

  /// The session has ended. Answers of which chains somebody else is to be chosen.
  mutating func closed(_ session: SessionID) -> [(partition: PartitionID, replica: ReplicaID)] {
    untold[session] = nil
    var orphans: [(partition: PartitionID, replica: ReplicaID)] = []
    for partition in partitions.keys.sorted() {
      let chains = partitions[partition]?.filter { $0.value.isOf(session) } ?? [:]
      for (replica, chain) in chains.sorted(by: { $0.key < $1.key }) {
        partitions[partition]?[replica]?.lazy[session] = nil
        if chain.asked == session { partitions[partition]?[replica]?.asked = nil }
        if chain.eager == session {
          partitions[partition]?[replica]?.eager = nil
          orphans.append((partition, replica))
        }
      }
    }
    return orphans
  }

  // MARK: Telling

  private mutating func put(
    _ word: Word, of replica: ReplicaID, _ partition: PartitionID, to session: SessionID, at time: MonotonicTime
  ) {
    untold[session, default: [:]][partition, default: [:]][replica] = word
    toldAt = min(toldAt ?? time, time)
  }

  /// Ascending.
  mutating func takeUntold(_ now: MonotonicTime) -> [(session: SessionID, partition: PartitionID, chains: Untold)] {
    guard let due = toldAt, due <= now else { return [] }
    defer { (untold, toldAt) = ([:], nil) }
    return untold.sorted { $0.key < $1.key }.flatMap { session, partitions in
      partitions.sorted { $0.key < $1.key }.map { (session, $0, Untold($1)) }
    }
  }

  struct Untold {
    private let words: [ReplicaID: Word]

    fileprivate init(_ words: [ReplicaID: Word]) { self.words = words }

    /// Several where one message does not hold so many chains.
    func choices(of name: PartitionName) -> [PushChoice] {
      let words = words.sorted { $0.key < $1.key }
      return stride(from: 0, to: words.count, by: PushChoice.limit).map { start in
        let part = words[start..<min(start + PushChoice.limit, words.count)]
        func chains(_ word: Word) -> Set<ReplicaID> { Set(part.filter { $0.value == word }.map(\.key)) }
        return PushChoice(name, eager: chains(.eager), lazy: chains(.lazy), released: chains(.released))
      }
    }
  }
}
