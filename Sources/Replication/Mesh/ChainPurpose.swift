/// Why a chain's stored headers are read.
package enum ChainPurpose: Sendable {
  case unfold(HeaderRequest)
  case probe(SessionID, wantsReply: Bool)
  case answer(SessionID, ChainProbe)
  /// What memory has of the chain did not tell what the peer lacks.
  case wholeAnswer(SessionID, ChainProbe)
  /// Of a partition that its author may not carry any more; `peer`: what the other side said, if it has.
  case handOver(SessionID, peer: ChainProbe?)

  /// Of a chain of which memory has what lies above its trunk some runs below that are enough, ever wider apart: all of them
  /// would be read on every session.
  package var needsFewBelowTrunk: Bool {
    switch self {
    case .probe, .answer: true
    case .unfold, .wholeAnswer, .handOver: false
    }
  }
}
