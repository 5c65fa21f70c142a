import Replication
import Wire

/// When a node goes on under another replica id, and under which (rule C20).
struct ReplicaRenewal {
  private let state: EngineState

  /// One time for all of a transaction: what is open under an id must not outlast it.
  private let now: MonotonicTime

  init(_ state: EngineState) { (self.state, now) = (state, state.clock.now) }

  /// Nothing more may be written there under the present id. Where a new one is due and may not be drawn now, the present one
  /// goes on wherever nobody has shown another history of it and it may write.
  func mustChange(for partition: PartitionID, _ name: PartitionName) -> Bool {
    state.own.isRenewalDue && (mayDraw || state.own.isContested(partition)) || isBounded(in: name)
  }

  private var mayDraw: Bool { state.own.timeToRenewal(now) == 0 && !isFull }
  private var isFull: Bool { state.mesh.ledger.authority.isFull(state.identity.device) }

  /// By a membership of the device that stands, what it writes there counts.
  func hasRight(in name: PartitionName) -> Bool {
    let authority = state.mesh.ledger.authority
    return state.own.replica.map { authority.mayWriteOn(as: $0.id, in: name) } == true
      || authority.membershipToWrite(as: state.identity.device, in: name) != nil
  }

  /// The same, under an id that it has or may draw.
  func mayWrite(in partition: PartitionID, _ name: PartitionName) -> Bool {
    hasRight(in: name) && !(isFull && mustChange(for: partition, name) && earlier(for: name) == nil)
  }

  /// Another id is due there, and may not be drawn yet.
  func isPutOff(for partition: PartitionID, _ name: PartitionName) -> Bool {
    state.own.timeToRenewal(now) > 0 && mustChange(for: partition, name) && earlier(for: name) == nil
  }

  /// An id that was left for another membership's right, and is of use again: else each change of partition would cost one.
  private func earlier(for name: PartitionName) -> OwnReplica.Resting? {
    guard !state.own.isRenewalDue else { return nil }
    return state.own.resting.last {
      state.mesh.ledger.authority.mayWriteOn(as: $0.noted.incarnation.id, in: name) && isWhereItWasLeft($0)
    }
  }

  /// Nobody has shown that somebody else wrote under it meanwhile.
  private func isWhereItWasLeft(_ resting: OwnReplica.Resting) -> Bool {
    let id = resting.noted.incarnation.id
    return state.mesh.partitions.values.allSatisfy { partition in
      partition.log.received[id] == resting.ends[partition.id]?.position && !partition.log.isOfSeveralHistories(id)
    }
  }

  /// What is written under the present id would not all count, and under a new one it would: the device's right is that of another
  /// of its memberships, or came back after an end.
  private func isBounded(in name: PartitionName) -> Bool {
    guard let replica = state.own.replica?.id, !state.mesh.ledger.authority.mayWriteOn(as: replica, in: name) else {
      return false
    }
    return state.mesh.ledger.authority.membershipToWrite(as: state.identity.device, in: name) != nil
  }

  /// Goes on under an id that rests, or draws a new one: with the first change after the cause, not at start, since a node that
  /// only reads leaves no trace in vectors. The declaration stands in the transaction of that change, so that nothing is stored
  /// under the new id without it.
  func changeIfDue(
    for partition: PartitionID, _ name: PartitionName, _ transaction: any LogTransaction, _ done: inout Committed
  ) throws {
    guard mustChange(for: partition, name) else { return }
    let hash = state.identity.cryptography.hash
    if let earlier = earlier(for: name) {
      try transaction.setReplica(earlier.noted.incarnation)
      done.hasChangedReplica = true
      return state.own.goOn(as: earlier, hash)
    }
    let wait = state.own.timeToRenewal(now)
    guard wait == 0 else {
      let seconds = (wait + 999) / 1_000
      throw state.own.isRenewalDue
        ? EngineError.renewedLately(name, seconds: seconds) : .otherMembershipLately(name, seconds: seconds)
    }
    let identity = state.identity
    let authority = state.mesh.ledger.authority
    guard !isFull else { throw EngineError.tooManyStatements }
    guard
      let membership = authority.membershipToWrite(as: identity.device, in: name)
        ?? authority.member(of: identity.device)
    else { throw EngineError.notAMember }
    let nonce = UUIDValue(high: state.random.next(), low: state.random.next())
    let replica = ReplicaID.derived(device: identity.deviceID, nonce: nonce, hash)
    let declaration = Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership.id)
    let last = authority.lastStatement(of: identity.device)
    let statement = try identity.statement(.replica(declaration), after: last)
    let incarnation = Incarnation(id: replica, nonce: nonce)
    try transaction.add(statement, arrived: state.clock.wallMilliseconds)
    try transaction.setReplica(incarnation)
    done.hasChangedReplica = true
    done.drawn = DrawnReplica(id: replica, previous: state.own.replica?.id, causes: state.own.causes)
    state.own.renew(incarnation, now, hash)
    done.directives += state.handle(.statementsStored([statement]))
  }
}

/// A replica id that stands in a commit for the first time.
struct DrawnReplica {
  let id: ReplicaID
  /// Nil for a store's first.
  let previous: ReplicaID?
  let causes: Set<RenewalCause>

  func note(in journal: any EngineJournal) {
    guard let previous else {
      return journal.note(.notice, "writes under its first replica id", ["replica": .replica(id)])
    }
    let why =
      causes.isEmpty ? "the old one may not write there" : causes.map(\.rawValue).sorted().joined(separator: "; ")
    journal.note(
      .notice, "goes on under a new replica id", ["old": .replica(previous), "new": .replica(id), "why": .text(why)])
  }
}

extension EngineIdentity {
  /// Signed by this device, as the next of its statements after `last`.
  func statement(_ body: Statement.Body, after last: Statement.Link?) throws(StatementError) -> Statement {
    let unsigned = try StatementCodec.unsigned(fleet: fleet, issuer: device, after: last, body: body)
    return try StatementCodec.assemble(
      unsigned: unsigned, signature: cryptography.sign(unsigned), cryptography.hash)
  }
}
