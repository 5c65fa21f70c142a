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

    /// A document with fields that only some rules allow is looked at again where rules change.
    func adding(_ document: OwnDocument?) -> Documents {
      guard let document, document.otherFields.isEmpty else { return .any }
      return switch self {
      case .none: .own(document.user)
      case .own(let user): user == document.user ? self : .any
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
    let sound = min(limits.bound.sequence, limits.known, ruled(by: limits))
    return sound < sequence ? sound + 1 : nil
  }
  /// Up to where document rules allow what is in the trunk without a look at each change.
  private func ruled(by limits: ChainLimits) -> UInt64 {
    switch documents {
    case .none: sequence
    case .any: limits.free
    case .own(let user):
      max(limits.free, limits.ownDocuments.lazy.filter { $0.user == user }.map(\.limit).max() ?? 0)
    }
  }
}
