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
    var isDropped = false
  }

  /// Of the node that is asked now, of the one before it, and of all earlier ones together: more than ten thousand of 16 KiB. Whoever
  /// is asked may be a stranger, who signs what he likes.
  static let byteLimit = 256 * 1_024 * 1_024
  /// Over a slow link a node may answer only when others were asked behind it. So many that told no statements are waited for, and
  /// whoever dials has room for as many connections.
  static let silentLimit = 8

  /// Of the node that is asked now, from 1 on. Its number is the tag of its dial.
  private var round: UInt64 = 0
  private var isAnswered = true
  private var byConnection: [ConnectionID: Asked] = [:]

  /// The round that begins, and connections of earlier ones that are to be closed. Of those that told statements the one before may
  /// still be about to end well; what others would go on to send takes the link from it. Of those that told none the latest stay.
  mutating func begin() -> (round: UInt64, outdated: [ConnectionID]) {
    round += 1
    isAnswered = false
    let earlier = byConnection.filter { $0.value.round + 1 < round }
    let telling = earlier.filter { !$0.value.statements.isEmpty }.map(\.key)
    let silent = earlier.filter { $0.value.statements.isEmpty }.sorted { $0.value.round > $1.value.round }.map(\.key)
    let outdated = telling + silent.dropFirst(AskedNodes.silentLimit)
    for id in outdated { drop(id) }
    return (round, outdated)
  }

  /// What it told and goes on to tell counts no more. Its connection is to be closed.
  mutating func drop(_ id: ConnectionID) {
    byConnection[id]?.isDropped = true
    byConnection[id]?.statements = []
    byConnection[id]?.byteCount = 0
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

  /// False where they are more than a fleet has, or than there is room for.
  mutating func collect(_ statements: [Statement], from id: ConnectionID) -> Bool {
    guard let known = byConnection[id], !known.isDropped else { return true }
    let byteCount = statements.reduce(known.byteCount) { $0 + $1.encoded.count }
    guard known.statements.count + statements.count <= Statement.countLimit,
      byteCount + byteCountBeside(known) <= AskedNodes.byteLimit
    else { return false }
    byConnection[id]?.statements += statements
    byConnection[id]?.byteCount = byteCount
    return true
  }

  /// What shares the room with it. The node that is asked now and the one before it, which may still be about to end well, each
  /// have their own; all earlier ones share theirs with one another.
  private func byteCountBeside(_ asked: Asked) -> Int {
    guard asked.round + 1 < round else { return 0 }
    return byConnection.values.reduce(0) { sum, other in
      let isBeside = other.round + 1 < round && other.connection.id != asked.connection.id
      return isBeside ? sum + other.byteCount : sum
    }
  }

  func statements(from id: ConnectionID) -> [Statement] { byConnection[id]?.statements ?? [] }

  /// How many have come in the present round.
  var statementCount: Int {
    byConnection.values.lazy.filter { $0.round == round }.reduce(0) { $0 + $1.statements.count }
  }
}
