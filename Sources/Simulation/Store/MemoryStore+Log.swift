import Engine
import Replication
import Storage

// What is written beside documents and pieces.
extension MemoryStore: LogTransaction {
  package func add(_ statement: Statement, arrived: Int64) throws {
    requireTransaction()
    guard image.statements.count < Statement.countLimit else {
      throw StoreError.limitReached(what: "statements", limit: Statement.countLimit)
    }
    let id = statement.id
    guard image.statementIDs.insert(id).inserted else { return }
    image.statements.append(statement.encoded)
    onFailure {
      $0.statements.removeLast()
      $0.statementIDs.remove(id)
    }
  }

  package func removeStatement(_ id: Digest) throws {
    requireTransaction()
    guard image.statementIDs.remove(id) != nil else { return }
    let before = image.statements
    image.statements.removeAll { FakeCryptography.statement($0).statement?.id == id }
    onFailure {
      $0.statements = before
      $0.statementIDs.insert(id)
    }
  }

  package func setReplica(_ replica: Incarnation) throws {
    requireTransaction()
    image.own.replica = replica
    image.own.isRestored = false
  }

  package func setUnderstanding(_ understanding: [UInt8]) throws {
    requireTransaction()
    image.own.understanding = understanding
  }

  package func setLogDamaged(_ isDamaged: Bool) throws {
    requireTransaction()
    image.own.isLogDamaged = isDamaged
  }

  package func setProgress(commits: UInt64, timestamp: HybridTimestamp) throws {
    requireTransaction()
    (image.own.commits, image.own.timestamp) = (commits, timestamp)
  }

  package func subscribe(_ pattern: Text) throws {
    requireTransaction()
    if image.subscriptions.insert(pattern).inserted { onFailure { $0.subscriptions.remove(pattern) } }
  }

  package func unsubscribe(_ pattern: Text) throws {
    requireTransaction()
    if image.subscriptions.remove(pattern) != nil { onFailure { $0.subscriptions.insert(pattern) } }
  }

  package func put(_ invitation: Invitation) throws {
    requireTransaction()
    if Int64(exactly: invitation.serial) == nil {
      throw StoreError.outOfRange(what: "invitation", value: invitation.serial)
    }
    let old = image.invitations.updateValue(invitation, forKey: invitation.serial)
    onFailure { $0.invitations[invitation.serial] = old }
  }

  package func removeInvitation(_ serial: UInt64) throws {
    requireTransaction()
    guard let old = image.invitations.removeValue(forKey: serial) else { return }
    onFailure { $0.invitations[serial] = old }
  }

  package func put(_ kept: KeptHoldings, in partition: PartitionID) throws {
    requireTransaction()
    let place = MemoryHoldingsPlace(partition: partition, subject: kept.holdings.subject)
    let old = image.holdings[place]
    guard kept.holdings.number >= old?.holdings.number ?? 0 else { return }
    image.holdings[place] = kept
    onFailure { $0.holdings[place] = old }
  }

  // MARK: Contacts

  package func noteContact(_ device: DeviceID, address: String?, time: Int64) throws {
    let old = image.contacts[device]
    var contact = old ?? MemoryContact(lastContact: time)
    contact.lastContact = max(contact.lastContact, time)
    if let address { contact.note(Text(address), time: time) }
    image.contacts[device] = contact
    onFailure { $0.contacts[device] = old }
    if image.contacts.count > StoredPeer.countLimit { forgetOldestContact() }
  }

  /// The longest unseen one, of those the one whose id is the greatest.
  private func forgetOldestContact() {
    let oldest = image.contacts.min { ($0.value.lastContact, $1.key) < ($1.value.lastContact, $0.key) }
    guard let (device, contact) = oldest else { return }
    image.contacts[device] = nil
    onFailure { $0.contacts[device] = contact }
  }

  // MARK: Partitions and chains

  package func addPartition(_ id: PartitionID, _ name: PartitionName) throws {
    let number = makePartition(id)
    guard let known = image.partitions[number], known.name == nil else { return }
    image.partitions[number]?.name = name
    onFailure { $0.partitions[number]?.name = nil }
  }

  package func removePartition(_ id: PartitionID) throws {
    requireTransaction()
    guard let number = image.partitionNumbers[id], let partition = image.partitions[number], partition.isEmpty else {
      return
    }
    image.partitions[number] = nil
    image.partitionNumbers[id] = nil
    onFailure {
      $0.partitions[number] = partition
      $0.partitionNumbers[id] = number
    }
  }

  /// The partition's number, made at its first mention.
  func makePartition(_ id: PartitionID) -> Int {
    requireTransaction()
    if let known = image.partitionNumbers[id] { return known }
    let number = image.partitions.count
    image.partitions.append(MemoryPartition(id: id))
    image.partitionNumbers[id] = number
    onFailure {
      $0.partitions.removeLast()
      $0.partitionNumbers[id] = nil
    }
    return number
  }

  private func makeChain(
    _ replica: ReplicaID, in partition: Int, _ id: PartitionID, genesis: @autoclosure () -> Digest
  ) -> Int {
    if let known = image.partitions[partition]?.chains[replica] { return known }
    let start = Engine.ChainMark(sequence: 0, hash: genesis())
    let number = image.chains.count
    image.chains.append(
      MemoryChain(
        partition: id, replica: replica, marks: ChainMarks(received: start, accepted: start, isForked: false)))
    image.partitions[partition]?.chains[replica] = number
    onFailure {
      $0.chains.removeLast()
      $0.partitions[partition]?.chains[replica] = nil
    }
    return number
  }

  package func append(
    _ run: AppendedRun, to chain: ChainIdentity, genesis: @autoclosure () -> Digest
  ) throws -> Int64 {
    let partition = makePartition(chain.partition)
    let number = makeChain(chain.replica, in: partition, chain.partition, genesis: genesis())
    precondition(run.first > 0 && run.first <= run.last, "a run from \(run.first) to \(run.last)")
    try MemoryStore.check(run.first)
    try MemoryStore.check(run.last)
    let arrival = takeArrival()
    let record = LogRun(
      arrival: arrival, first: run.first, last: run.last, context: run.context.withoutZeros, body: Array(run.body))
    // Behind all that end at the same change: they came before.
    let place = image.chains[number].firstRun(above: run.last)
    image.chains[number].runs.insert(MemoryRun(record), at: place)
    onFailure { $0.chains[number].runs.remove(at: place) }
    count(
      MemoryTotals(changes: Int64(clamping: run.last - run.first + 1), logBytes: Int64(run.body.count)), in: partition)
    image.lastArrival = arrival
    return arrival
  }

  /// Nobody follows its documents by number.
  package func noteRebuild(of partition: PartitionID) throws {}

  package func replaceRun(at arrival: Int64, with run: AppendedRun, of chain: ChainIdentity) throws {
    requireTransaction()
    guard let number = image.chain(chain),
      let place = image.chains[number].runs.firstIndex(where: { $0.record.arrival == arrival })
    else { throw StoreError.damagedLog("run \(arrival) is not where it was") }
    let old = image.chains[number].runs[place]
    image.chains[number].runs[place] = MemoryRun(
      LogRun(
        arrival: arrival, first: run.first, last: run.last, context: run.context.withoutZeros, body: Array(run.body)))
    onFailure { $0.chains[number].runs[place] = old }
  }

  /// The sums over all partitions come back by themselves.
  func count(_ change: MemoryTotals, in partition: Int) {
    guard let old = image.partitions[partition]?.totals else { return }
    image.count(change, in: partition)
    onFailure { $0.partitions[partition]?.totals = old }
  }

  package func setMarks(_ marks: ChainMarks, of chain: ChainIdentity) throws {
    requireTransaction()
    guard let number = image.chain(chain) else { return }
    try MemoryStore.check(marks.received.sequence)
    try MemoryStore.check(marks.accepted.sequence)
    let old = image.chains[number].marks
    image.chains[number].marks = marks
    onFailure { $0.chains[number].marks = old }
  }

  package func add(_ reissue: Reissue, in partition: PartitionID) throws {
    let number = makePartition(partition)
    try MemoryStore.check(reissue.dot.sequence)
    try MemoryStore.check(reissue.origin.dot.sequence)
    guard image.partitions[number]?.reissues[reissue.hash] == nil else { return }
    image.partitions[number]?.reissues[reissue.hash] = reissue
    onFailure { $0.partitions[number]?.reissues[reissue.hash] = nil }
  }
}

extension MemoryContact {
  /// Keeps the latest ``StoredPeer/addressLimit``, of equally old ones the first in byte order.
  fileprivate mutating func note(_ address: Text, time: Int64) {
    addresses[address] = max(addresses[address] ?? time, time)
    guard addresses.count > StoredPeer.addressLimit else { return }
    let oldest = addresses.min { ($0.value, $1.key) < ($1.value, $0.key) }
    if let oldest { addresses[oldest.key] = nil }
  }
}

extension VersionVector {
  /// In the log an entry of zero is one that is not there.
  fileprivate var withoutZeros: VersionVector {
    guard entries.contains(where: { $0.value.sequence == 0 }) else { return self }
    return VersionVector(entries.filter { $0.value.sequence != 0 })
  }
}
