/// One record on its way, whole or as what differs from an earlier one.
package struct HoldingsItem: Sendable, Equatable {
  package let partition: PartitionName
  package let subject: Holdings.Subject
  package let number: UInt64
  /// The number of the record that ``entries`` go on from; 0 where they are whole.
  package let base: UInt64
  package let entries: ContextForm
  package let ownLast: Holdings.OwnLast?
  /// Over the whole record, however it travels.
  package let signature: Signature

  package init(
    partition: PartitionName, subject: Holdings.Subject, number: UInt64, base: UInt64, entries: ContextForm,
    ownLast: Holdings.OwnLast?, signature: Signature
  ) {
    (self.partition, self.subject, self.number, self.base) = (partition, subject, number, base)
    (self.entries, self.ownLast, self.signature) = (entries, ownLast, signature)
  }

  /// Of one message.
  package static let limit = 256
  /// A sender closes a message here.
  package static let byteTarget = 256 * 1_024

  var entryCount: Int {
    switch entries {
    case .full(let vector): vector.count
    case .increments(let increments): increments.count
    }
  }

  /// What it takes on the wire, never less.
  var byteCount: Int {
    HoldingsItem.leastByteCount + partition.text.utf8.count + HoldingsItem.entryBytes * entryCount
  }
  static let leastByteCount = 150
  private static let entryBytes = 45
}

/// What two nodes ask one another so that both know the same records, and to hear what holds now.
package enum HoldingsQuestion: Sendable, Equatable {
  /// Stands for the numbers of all records in the common scope.
  case sum(UInt64, isAnswer: Bool)
  /// The sums differ: partitions of which records are here, those that changed since both were last level.
  case list([Listed])
  /// Numbers of the records that are here of these partitions, which acknowledges them. The answer is what is newer, and,
  /// where `wantsBack`, what the peer has of those partitions where this side is ahead.
  case known([Known], wantsBack: Bool)
  /// Say now what you hold.
  case fresh([PartitionName])

  package struct Listed: Sendable, Equatable {
    /// The first eight bytes of the partition's id.
    package let prefix: UInt64
    package let sum: UInt64
    package init(prefix: UInt64, sum: UInt64) { (self.prefix, self.sum) = (prefix, sum) }
  }

  package struct Known: Sendable, Equatable {
    package let partition: PartitionName
    package let numbers: [Holdings.Subject: UInt64]
    package init(partition: PartitionName, numbers: [Holdings.Subject: UInt64]) {
      (self.partition, self.numbers) = (partition, numbers)
    }
  }

  /// Partitions of one list.
  package static let listLimit = 16_384
  /// Partitions of one message that names numbers, and numbers in it.
  package static let knownLimit = 64
  package static let numberLimit = 4_096
  /// Partitions of one message that asks for the present word.
  package static let freshLimit = 64
}

/// What two nodes say of holdings, and only they that have said that they take it.
package enum HoldingsMessage: Sendable, Equatable {
  case records([HoldingsItem])
  case question(HoldingsQuestion)
}

extension SignedHoldings {
  /// Against what the receiver has for certain, where that is the record before.
  func item(after step: HoldingsBook.Step?, known: UInt64?) -> HoldingsItem {
    let isNext = step != nil && step?.base == known
    return HoldingsItem(
      partition: holdings.partition, subject: holdings.subject, number: holdings.number,
      base: isNext ? step?.base ?? 0 : 0,
      entries: isNext ? step?.entries ?? .full(holdings.vector) : .full(holdings.vector),
      ownLast: holdings.ownLast, signature: signature)
  }
}
