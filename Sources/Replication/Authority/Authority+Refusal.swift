/// Why a run is neither stored nor passed on (rule C7). Raw values are the words of the conformance vectors.
package enum Refusal: String, Hashable, Sendable, Error {
  case undeclared
  /// Declared by nobody who may.
  case void
  case wrongSigner = "wrong-signer"
  case malformed
  /// No grant or rule ever issued allows it.
  case noGrant = "no-grant"
  case documentRule = "document-rule"
}

extension Authority {
  /// Only what widens rights is asked, never a limit, so that an honest relay holds nothing that another must refuse.
  /// `genesis`: the chain's hash before its first change.
  package func refusal(of run: RunSummary, genesis: Digest) -> Refusal? {
    guard let member = membership(for: run.replica) else { return isVoid(run.replica) ? .void : .undeclared }
    guard run.signer == member.device else { return .wrongSigner }
    guard run.isWellFormed(genesis: genesis) else { return .malformed }
    let sources = sources(for: member, replica: run.replica, in: run.partition)
    guard !sources.isEmpty else { return .noGrant }
    if sources.contains(where: { !$0.isAuthorBound }) { return nil }
    // What an unknown codec hides is judged by whoever can read it; until then the chain is held.
    let fits = run.allFacts.allSatisfy { $0.ownDocument == member.user || $0.recognition == .unknownCodec }
    return fits ? nil : .documentRule
  }
}
