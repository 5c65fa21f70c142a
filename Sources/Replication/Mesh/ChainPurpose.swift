/// Why a chain's stored headers are read.
package enum ChainPurpose: Sendable {
  case unfold(HeaderRequest)
  /// Of its trunk some runs are enough, the last and others ever wider apart: who says little may have it asked for often.
  case probe(SessionID, wantsReply: Bool)
  /// The same; of a chain that memory has as its trunk alone also the run with the highest change that the probe names and that is
  /// here, and the one behind it. Where it names none that is here: the first.
  case answer(SessionID, ChainProbe)
  /// What memory has of the chain did not tell what the peer lacks: all of it is read.
  case wholeAnswer(SessionID, ChainProbe)
  /// Of a partition that its author may not carry any more; `peer`: what the other side said, if it has.
  case handOver(SessionID, peer: ChainProbe?)
}
