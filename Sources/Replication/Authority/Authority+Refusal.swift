/// Why a run is not taken as it is (rule C7). Raw values are the words of the conformance vectors.
package enum Refusal: String, Hashable, Sendable, Error {
  case undeclared
  /// Declared by nobody who may.
  case void
  case wrongSigner = "wrong-signer"
  case malformed
  /// No grant, rule or invitation ever issued allows it.
  case noGrant = "no-grant"
  case documentRule = "document-rule"

  /// A right is missing, which is never the connection's fault.
  package var isLackOfRight: Bool { self == .noGrant || self == .documentRule }
}

extension Authority {
  /// Only what widens rights is asked, never a limit, so that an honest relay holds nothing that another must refuse.
  /// `genesis`: the chain's hash before its first change.
  package func refusal(of run: RunSummary, genesis: Digest) -> Refusal? {
    guard let owner = members.byReplica[run.replica] else { return isVoid(run.replica) ? .void : .undeclared }
    guard run.signer == owner.device else { return .wrongSigner }
    guard run.isWellFormed(genesis: genesis) else { return .malformed }
    let sources = sources(for: owner, replica: run.replica, in: run.partition)
    guard !sources.isEmpty, case .member(let member) = owner else { return .noGrant }
    let fields = sources.compactMap(\.ownFields)
    guard fields.count == sources.count else { return nil }
    let rules = fields.map { OwnDocumentLimit(user: member.user, moreFields: $0) }
    // What an unknown codec hides is judged by whoever can read it; until then the chain is held.
    let fits = run.allFacts.allSatisfy { facts in
      facts.recognition == .unknownCodec || rules.contains { $0.allows(facts.ownDocument) }
    }
    return fits ? nil : .documentRule
  }
}
