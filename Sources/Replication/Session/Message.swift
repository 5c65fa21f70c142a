/// What two nodes say to one another on an authenticated connection. `Docs/PROTOCOL.md` has the bytes.
package enum Message: Sendable, Equatable {
  case hello(Hello)
  case joinRequest(JoinRequest)
  /// All statements of the fleet went before, in ``statements(_:of:)``.
  case joinAccepted(JoinAcceptance)
  case joinRefused(JoinRefusal)
  case credentialRequest(fleetProof: Digest)
  /// Statements that show the sender to be a member: its membership, and that of the admin who signed it where it was not
  /// root. At most ``Message/credentialLimit``.
  case credentials([[UInt8]])
  case statementSet(StatementSet)
  case statements([[UInt8]], of: Text = "")
  /// The sender has sent every statement of the scope that the peer was found to lack.
  case statementsComplete(of: Text = "")
  case interestRequest
  case interest(Interest)
  case interestChange(added: Interest, removed: Interest)
  case summary(Summary)
  /// Vectors of partitions of the common scope that differ.
  case vectors([PartitionVector])
  /// Asks for a stream: everything above this vector, then everything new as it comes. The number is the asker's; batches
  /// of an earlier stream of this partition that are still under way no longer count.
  case pull(stream: UInt64, PartitionVector)
  case runs(RunBatch)
  /// One piece of a payload that travels apart, ahead of the run that names it.
  case payloadPiece(PayloadPiece)
  /// Positions that the sender holds durably: acknowledgement to who sent them, suppression to everyone else.
  case have(PartitionVector)
  /// Positions spaced ever wider back to the start of a chain: where do our histories part?
  case chainProbe(ChainProbe)
  case ping(nonce: UInt64)
  case pong(nonce: UInt64)
  /// The last message of a sender that closes in order.
  case goodbye(Goodbye)

  /// What devices hold, or a question about it; only to who has said that it takes this.
  case holdings(HoldingsMessage)

  /// Optional. Devices that have taken all they may of the sender: what they alone wrote is not compared with who says the
  /// same.
  case spent(SpentDevices)

  /// Only to who has said that it takes this (``KnownFormats/Feature/neighbours``). What a neighbour of the peer brought is
  /// not sent to the peer as well.
  case neighbours(NeighbourNews)

  /// Only to who has said that it takes this (``KnownFormats/Feature/pushChoice``).
  case pushChoice(PushChoice)

  package static let credentialLimit = 2
}

/// Why a sender closes.
package enum Goodbye: UInt64, Sendable, Equatable, CaseIterable {
  case stopping = 0
  case otherFleet = 1
  case notAMember = 2
  case duplicate = 3
  case protocolError = 4
  case versionUnknown = 5
  case ownConnection = 6
}

/// What a node wants: exact partitions by id, so that no name is told to who may not know it, and prefixes.
package struct Interest: Sendable, Equatable {
  package var partitions: PartitionIDs
  /// Prefixes of names, without the closing `*`; the empty prefix wants everything.
  package var prefixes: Set<Text>

  /// Of one message, and of what a peer's changes may add up to.
  package static let partitionLimit = 100_000
  package static let prefixLimit = 1_000
  static let itemLimit = partitionLimit + prefixLimit

  package init(partitions: some Sequence<PartitionID> = [PartitionID](), prefixes: Set<Text> = []) {
    (self.partitions, self.prefixes) = ((partitions as? PartitionIDs) ?? PartitionIDs(partitions), prefixes)
  }

  package var isEmpty: Bool { partitions.isEmpty && prefixes.isEmpty }

  var isWithinLimits: Bool {
    partitions.count <= Interest.partitionLimit && prefixes.count <= Interest.prefixLimit
  }

  package func wants(_ id: PartitionID, name: PartitionName) -> Bool {
    partitions.contains(id) || prefixes.contains { name.text.utf8.starts(with: $0.utf8) }
  }

  package func digest(_ hash: HashFunction) -> Digest {
    var input = DomainTag.interest.bytes
    for id in partitions { id.digest.append(to: &input) }
    for prefix in prefixes.sorted() { appendCounted(prefix.bytes, to: &input) }
    return Digest.of(input, hash)
  }

  package func adding(_ other: Interest) -> Interest {
    Interest(partitions: partitions.union(other.partitions), prefixes: prefixes.union(other.prefixes))
  }

  package func removing(_ other: Interest) -> Interest {
    guard !other.isEmpty else { return self }
    return Interest(
      partitions: partitions.subtracting(other.partitions), prefixes: prefixes.subtracting(other.prefixes))
  }
}

package struct ChainProbe: Sendable, Equatable {
  package let name: PartitionName
  package let replica: ReplicaID
  /// Ascending; the ends of runs, dense near the tip, ever wider apart towards the start.
  package let positions: [ChainPosition]
  /// The peer is asked to answer with a probe of its own.
  package let wantsReply: Bool

  package static let positionLimit = 128

  package init(name: PartitionName, replica: ReplicaID, positions: [ChainPosition], wantsReply: Bool) {
    (self.name, self.replica, self.positions, self.wantsReply) = (name, replica, positions, wantsReply)
  }
}
