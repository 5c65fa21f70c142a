/// What two nodes say to find out which statements of one scope the other lacks.
package struct StatementSet: Sendable, Equatable {
  /// Empty for the fleet, otherwise a room's partition name.
  package let scope: Text
  package let step: Step

  package enum Step: Sendable, Equatable {
    /// One digest for each bucket of issuers.
    case buckets([UInt64])
    /// The sender's tips of all issuers in the buckets whose bits are set.
    case tips(listed: UInt64, [IssuerTips])
    /// The sender's tips of each issuer of whom it does not know all that were told: it lacks something there.
    case wanted([IssuerTips])
  }

  package static let bucketCount = 64
  /// Issuers and tips of one message together.
  package static let entryLimit = 32_768

  package init(scope: Text, _ step: Step) { (self.scope, self.step) = (scope, step) }

  /// Keys are as good as random: their first bits spread them. Whoever grinds one makes a bucket longer.
  package static func bucket(of issuer: PublicKey) -> Int { Int(issuer.raw.words.0 >> 58) }
}

/// The last statements of one issuer in one scope: those that none of its others goes on from. Who holds a statement holds
/// what it goes on from (rule C26), so tips say which statements are held.
package struct IssuerTips: Hashable, Sendable {
  package let issuer: PublicKey
  /// Ascending; more than one where its statements fork, none where nothing of it is held.
  package let tips: [StatementTip]

  package init(issuer: PublicKey, tips: [StatementTip]) { (self.issuer, self.tips) = (issuer, tips) }
}

package struct StatementTip: Hashable, Comparable, Sendable {
  package let sequence: UInt64
  /// The first 16 bytes.
  package let id: TipHash

  package init(sequence: UInt64, id: TipHash) { (self.sequence, self.id) = (sequence, id) }

  package static func < (a: StatementTip, b: StatementTip) -> Bool { (a.sequence, a.id) < (b.sequence, b.id) }
}
