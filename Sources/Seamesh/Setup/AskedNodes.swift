import Replication
import Transport

/// Whom an inquiry has asked. One node is asked after another; what an earlier one still says or does is heard, but it is no
/// answer of the present one's.
struct AskedNodes {
  private struct Asked {
    let connection: OpenedConnection
    let round: UInt64
    var statements: [Statement] = []
    var byteCount = 0
  }

  /// More than ten thousand of 16 KiB. Whoever is asked may be a stranger, who signs what he likes.
  static let byteLimit = 256 * 1_024 * 1_024

  /// Of the node that is asked now, from 1 on. Its number is the tag of its dial.
  private var round: UInt64 = 0
  private var isAnswered = true
  private var byConnection: [ConnectionID: Asked] = [:]

  /// The round that begins, and connections of earlier ones that are to be closed. Statements are kept of the one before alone: it
  /// may still be about to end well. What others would go on to send takes the link from those.
  mutating func begin() -> (round: UInt64, outdated: [ConnectionID]) {
    round += 1
    isAnswered = false
    // Who has said nothing yet costs nothing, and may come to speak.
    let outdated = byConnection.filter { $0.value.round + 1 < round && !$0.value.statements.isEmpty }.map(\.key)
    for id in outdated {
      byConnection[id]?.statements = []
      byConnection[id]?.byteCount = 0
    }
    return (round, outdated)
  }

  /// The present one had its time.
  mutating func end() { isAnswered = true }

  mutating func opened(_ connection: OpenedConnection) {
    guard case .dialled(let tag) = connection.origin else { return }
    byConnection[connection.id] = Asked(connection: connection, round: tag)
  }

  subscript(id: ConnectionID) -> OpenedConnection? { byConnection[id]?.connection }

  /// The node of a round does not help. True where that is the present one, for the first time.
  mutating func failed(round failed: UInt64?) -> Bool {
    guard failed == round, !isAnswered else { return false }
    isAnswered = true
    return true
  }

  mutating func failed(_ id: ConnectionID) -> Bool { failed(round: byConnection[id]?.round) }

  /// Answers who it was with, and whether the present question ends with it.
  mutating func closed(_ id: ConnectionID) -> (remote: SocketAddress?, endsRound: Bool) {
    let endsRound = failed(id)
    return (byConnection.removeValue(forKey: id)?.connection.remote, endsRound)
  }

  // MARK: Statements

  /// False where they are more than a fleet has.
  mutating func collect(_ statements: [Statement], from id: ConnectionID) -> Bool {
    guard let known = byConnection[id] else { return true }
    let byteCount = statements.reduce(known.byteCount) { $0 + $1.encoded.count }
    guard known.statements.count + statements.count <= Statement.countLimit, byteCount <= AskedNodes.byteLimit else {
      return false
    }
    byConnection[id]?.statements += statements
    byConnection[id]?.byteCount = byteCount
    return true
  }

  func statements(from id: ConnectionID) -> [Statement] { byConnection[id]?.statements ?? [] }

  /// How many have come in the present round.
  var statementCount: Int {
    byConnection.values.lazy.filter { $0.round == round }.reduce(0) { $0 + $1.statements.count }
  }
}
