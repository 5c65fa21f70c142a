/// The settled beginning of a chain: here, linear, accepted, and no other change known at any of its sequences.
///
/// It is all that memory holds of a chain that nobody forked and nothing holds back.
package struct ChainTrunk: Hashable, Sendable {
  /// Whose own documents its changes write, which decides whether the document rule lets them count.
  package enum Documents: Hashable, Sendable {
    case none
    /// Every change writes this user's own document and nothing else.
    case own(Text)
    case any

    func adding(_ owner: Text?) -> Documents {
      guard let owner else { return .any }
      return switch self {
      case .none: .own(owner)
      case .own(let user): user == owner ? self : .any
      case .any: .any
      }
    }
  }

  package var sequence: UInt64
  /// The chain hash at ``sequence``; the chain's genesis at 0.
  package var hash: Digest
  package var documents: Documents

  package init(sequence: UInt64, hash: Digest, documents: Documents) {
    (self.sequence, self.hash, self.documents) = (sequence, hash, documents)
  }

  /// The first sequence that must be looked at again under these limits; nil if the trunk stands.
  func firstInDoubt(under limits: ChainLimits) -> UInt64? {
    let ruled = limits.free < sequence && documents != .none && documents != limits.user.map(Documents.own)
    let sound = min(limits.bound.sequence, ruled ? limits.free : sequence)
    return sound < sequence ? sound + 1 : nil
  }
}
