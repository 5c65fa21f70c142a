/// What a node holds: statements, the partitions that are judged under them, and how much of that is whose.
///
/// Sessions are lent it, and change nothing of it: what they bring enters by ``learn(_:in:)`` and ``admit(_:_:)``. Own writes
/// enter here as well, within the transaction that commits them.
package struct Ledger: Sendable {
  package let fleet: FleetID
  let device: PublicKey
  /// This device, as neighbours are named.
  let mark: DeviceMark
  let cryptography: Cryptography
  package internal(set) var authority: Authority
  /// As they were signed.
  package internal(set) var statements: [TipHash: [UInt8]] = [:]
  var roomAllowance = RoomAllowance()
  package internal(set) var partitions = PartitionTable()
  /// Partitions with chains that do not go by the statements altogether, since the disk does not give their headers.
  package internal(set) var unread: Set<PartitionID> = []
  package internal(set) var takes: DeviceTakes

  init(
    _ local: LocalIdentity, _ cryptography: Cryptography, _ authority: Authority, _ statements: [Statement],
    _ partitions: [PartitionState], _ limits: DeviceTakeLimits
  ) {
    (fleet, device, self.cryptography, self.authority) = (local.fleet, local.device, cryptography, authority)
    mark = DeviceMark(DeviceID.derived(from: local.device, cryptography.hash))
    takes = DeviceTakes(limits)
    for statement in statements where authority.holds(statement.id) { keep(statement) }
    for partition in partitions { self.partitions[partition.id] = partition }
    unread = Set(partitions.lazy.filter { !$0.log.unreadTrunks.isEmpty }.map(\.id))
    settleRooms(Set(authority.allStatements.lazy.filter { !$0.isOfFleet }.map(\.scope)))
    countTakes()
  }

  func id(of name: PartitionName) -> PartitionID { name.id(fleet: fleet, hash: cryptography.hash) }

  mutating func countTakes() { takes.count(partitions, authority) }

  // MARK: Partitions

  /// A partition that this node begins to write or to want.
  package mutating func begin(_ name: PartitionName) -> PartitionID {
    let id = id(of: name)
    if !partitions.holds(id) { partitions[id] = PartitionState(id: id, name: name, log: newLog(id, name)) }
    partitions[id]?.hasBegun = true
    return id
  }

  /// Something is to be judged of a partition that may not be here: it has not begun before a run of it is kept.
  mutating func expect(_ id: PartitionID, _ name: PartitionName) {
    guard !partitions.holds(id) else { return }
    partitions[id] = PartitionState(id: id, name: name, log: newLog(id, name), hasBegun: false)
  }

  /// What names a partition leaves nothing behind where nothing of it is kept.
  mutating func dropNothing(_ id: PartitionID) {
    if partitions.look(at: id, \.isNothing) == true { partitions[id] = nil }
  }

  private func newLog(_ id: PartitionID, _ name: PartitionName) -> PartitionLog {
    let (fleet, hash) = (fleet, cryptography.hash)
    return PartitionLog(name, authority: authority) { replica in
      ChainIdentity(fleet: fleet, partition: id, replica: replica).genesis(hash)
    }
  }

  /// Back to what was before own runs that did not reach the disk; a partition that was not there goes again.
  package mutating func restore(_ before: [PartitionID: PartitionState?]) {
    for (id, state) in before { partitions[id] = state }
    countTakes()
  }

  /// From the disk: so what comes next is known to be new to all that is stored, or not.
  package mutating func noteContexts(_ joined: VersionVector, in partition: PartitionID) {
    partitions[partition]?.log.learnContexts(joined)
  }

  // MARK: Runs

  /// Takes a run into its log, and counts what that makes its device take. Answers whether a chain begins with it.
  mutating func learn(_ run: RunSummary, in partition: PartitionID) -> (outcome: PartitionLog.Outcome?, begins: Bool) {
    let isNew = partitions[partition]?.log.received[run.replica] == nil
    let heldBefore = partitions[partition]?.log.heldCounts[run.replica] ?? 0
    let outcome = partitions[partition]?.learn(run)
    let held = (partitions[partition]?.log.heldCounts[run.replica] ?? 0) - heldBefore
    let begins = isNew && partitions[partition]?.log.received[run.replica] != nil
    guard begins || held != 0 else { return (outcome, false) }
    var more = DeviceTake(chains: begins ? 1 : 0, heldChanges: held)
    if begins, !takesPlace(run.signer, in: partition, besides: run.replica) { more.partitions = 1 }
    takes.add(more, of: run.signer, authority)
    return (outcome, begins)
  }

  /// An own run as it is learnt.
  func summary(ofOwn run: Run, in partition: PartitionID, signer: PublicKey) -> RunSummary? {
    guard let name = partitions[partition]?.name else { return nil }
    return RunSummary(run, in: name, signer: signer, formats: cryptography.formats) { _ in nil }
  }

  /// Marks the run with what it moved, unless that is the usual: all of it counts, is new to everything that counts, and
  /// was not issued before.
  func settled(_ run: DeliveredRun, _ change: LogChange, _ partition: PartitionID) -> DeliveredRun {
    guard let isUsual = partitions.look(at: partition, { isUsual(change, of: run, in: $0) }) else { return run }
    var run = run
    run.change = isUsual ? nil : change
    return run
  }

  private func isUsual(_ change: LogChange, of run: DeliveredRun, in state: PartitionState) -> Bool {
    let (replica, acceptance) = (run.incoming.replica, change.acceptance)
    return acceptance.count == 1 && acceptance[0].lost.isEmpty && acceptance[0].gained == run.incoming.hashes
      && change.effects.isEmpty && run.incoming.facts.allSatisfy { $0.origin == nil } && change.regrouped.isEmpty
      && !state.log.hasForkIn(run.context, of: replica)
      // It may have counted before it was damaged, and what it writes be there.
      && !state.log.incompleteChains.contains(replica)
      && (authority.required(of: replica, in: state.name) == .max
        || state.log.isUnseen(replica, from: run.incoming.first))
  }

  /// Partitions of which new statements of this reach move nothing are judged under them from now on. Answers the others,
  /// ascending.
  mutating func takeOver(_ reach: StatementReach) -> [PartitionID] {
    partitions.takeOver(authority) { $0.isUntouched(by: reach) }.sorted()
  }

  /// New statements may move what counts of every chain.
  mutating func adoptAuthority(in partition: PartitionID) -> PartitionLog.Outcome? {
    partitions[partition]?.waiting.beginAuthority()
    let before = partitions[partition]?.log.heldCounts ?? [:]
    let outcome = partitions[partition]?.log.adopt(authority)
    countHeld(since: before, in: partition)
    return outcome
  }

  /// Statements may make a device's changes held that counted, or let them count: also where storage had to be read first.
  private mutating func countHeld(since before: [ReplicaID: Int], in partition: PartitionID) {
    let now = partitions[partition]?.log.heldCounts ?? [:]
    for replica in Set(before.keys).union(now.keys) where before[replica] != now[replica] {
      for device in authority.bearers(of: replica) {
        takes.add(DeviceTake(heldChanges: (now[replica] ?? 0) - (before[replica] ?? 0)), of: device, authority)
      }
    }
  }

  // MARK: Vectors

  /// Of an entry a peer says that it holds more; what it holds is not here at all.
  func isAwaited(_ replica: ReplicaID, _ partition: PartitionID) -> Bool {
    partitions.look(at: partition) { $0.log.received[replica] != nil } != true
  }

  /// What nobody declared may be anything, and without end.
  func declared(_ vector: VersionVector, _ partition: PartitionID) -> VersionVector {
    func isKnown(_ replica: ReplicaID) -> Bool {
      authority.signer(of: replica) != nil || !isAwaited(replica, partition)
    }
    guard !vector.entries.keys.allSatisfy(isKnown) else { return vector }
    return VersionVector(vector.entries.filter { isKnown($0.key) })
  }

  // MARK: Statements

  var fleetStatements: ScopeStatements { ScopeStatements(authority.fleetStatements) }

  package var fleetStatementCount: Int { statements.count - roomAllowance.count }

  /// The scope's statements that are new here and within an allowance, with the set that they make. What nothing that is here
  /// leads to, or whose issuer has used up his allowance, does not come into it. Nil where nothing does.
  func admissible(_ list: [Statement]) -> (fresh: [Statement], grown: Authority)? {
    var allowance = roomAllowance
    var room = FleetRoom(authority, held: fleetStatementCount)
    // A peer may say one twice in a message; counted twice it would use up the room of whoever signed it.
    var said: Set<TipHash> = []
    let named = authority.namedByAdmins(in: list)
    let new = list.filter { statement in
      guard statements[statement.id.tip] == nil, said.insert(statement.id.tip).inserted else { return false }
      return statement.isOfFleet
        ? room.take(statement, isNamed: named.contains(statement.id)) : allowance.take(statement)
    }
    guard !new.isEmpty else { return nil }
    let grown = authority.adding(new)
    let fresh = new.filter { grown.holds($0.id) }
    return fresh.isEmpty ? nil : (fresh, grown)
  }

  /// Answers what fell out of the set, where other statements of the same issuer came in before it (rule C26), by number.
  mutating func admit(_ fresh: [Statement], _ grown: Authority) -> [Statement] {
    let before = authority
    authority = grown
    for statement in fresh { keep(statement) }
    var displaced: [Statement] = []
    if authority.count != statements.count {
      displaced = (Array(before.allStatements) + fresh).filter { !authority.holds($0.id) }
        .sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
      for statement in displaced where statements.removeValue(forKey: statement.id.tip) != nil && !statement.isOfFleet {
        roomAllowance.remove(statement)
      }
    }
    settleRooms(Set((displaced + fresh).lazy.filter { !$0.isOfFleet }.map(\.scope)))
    return displaced
  }

  private mutating func keep(_ statement: Statement) {
    statements[statement.id.tip] = statement.encoded
    if !statement.isOfFleet { roomAllowance.add(statement) }
  }

  /// The summaries of these scopes follow what is held of their statements.
  private mutating func settleRooms(_ scopes: Set<Text>) {
    for scope in scopes {
      guard let name = PartitionName(roomOf: scope) else { continue }
      let held = authority.statements(of: scope)
      let room = PartitionTable.Room(name: name, statements: Authority.digest(of: held, cryptography.hash))
      partitions.set(held.isEmpty ? nil : room, for: id(of: name))
    }
  }

  func lookAtInvariants() {
    Invariant.check(statements.count == authority.count, "statements are kept that are not in the set, or the reverse")
    Invariant.check(
      roomAllowance.count == authority.allStatements.count { !$0.isOfFleet }, "the allowance of rooms is miscounted")
    Invariant.check(takes.areCounted(partitions, authority), "what devices take is miscounted")
  }
}
