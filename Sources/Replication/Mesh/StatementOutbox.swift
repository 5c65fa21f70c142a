/// Statements that one session is still to be told, in order, and what is said behind the last of them.
///
/// A fleet may have more of them than a connection takes at once. They go out a window at a time, each once the session
/// has room again.
struct StatementOutbox: Sendable {
  enum End: Sendable {
    /// The peer has all that it lacked.
    case complete
    case joined(JoinAcceptance)
  }

  private var waiting: [(scope: Text, encoded: [UInt8])] = []
  /// Those before this one are said.
  private var next = 0
  private var end: End?

  var count: Int { waiting.count - next }
  var isEmpty: Bool { next == waiting.count && end == nil }

  mutating func put(_ statements: [[UInt8]], of scope: Text = "") { waiting += statements.map { (scope, $0) } }
  mutating func put(_ statements: [[UInt8]], then end: End) {
    put(statements)
    self.end = end
  }

  /// Statements of the fleet wait, or what is said behind the last of them.
  var holdsFleet: Bool { end != nil || waiting[next...].contains { $0.scope.utf8.isEmpty } }

  var scopes: Set<Text> { Set(waiting[next...].lazy.map(\.scope)) }

  /// Takes out what waits of these scopes.
  mutating func drop(_ scopes: Set<Text>) {
    guard !scopes.isEmpty else { return }
    (waiting, next) = (waiting[next...].filter { !scopes.contains($0.scope) }, 0)
  }

  /// The next of so many bytes, in messages: said at once, before the shell may look whether too much waits.
  mutating func takeWindow(_ byteCount: Int) -> [Message] {
    var (count, bytes) = (0, 0)
    while next + count < waiting.count, bytes < byteCount {
      bytes += waiting[next + count].encoded.count
      count += 1
    }
    var window = waiting[next..<next + count]
    next += count
    if next == waiting.count { (waiting, next) = ([], 0) }
    var messages: [Message] = []
    while let scope = window.first?.scope {
      let said = window.prefix { $0.scope == scope }
      messages += Mesh.batches(said.map(\.encoded)).map { .statements($0, of: scope) }
      window = window.dropFirst(said.count)
    }
    return messages
  }

  /// What is said behind the last statement, once.
  mutating func takeEnd() -> End? {
    guard next == waiting.count else { return nil }
    defer { end = nil }
    return end
  }
}

extension Mesh {
  /// Says what waits for the session, as far as there is room: the rest goes with the next tick, or when there is room again.
  mutating func pumpStatements(_ id: SessionID, _ step: inout Step) {
    guard let session = sessions[id], session.isWritable, !session.outbox.isEmpty else { return }
    sessions[id]?.lastOfStatements = step.now
    let byteCount = configuration.statementWindowByteCount
    for message in sessions[id]?.outbox.takeWindow(byteCount) ?? [] { step.emit(.send(id, message)) }
    switch sessions[id]?.outbox.takeEnd() {
    case .complete: statementsSaid(id, &step)
    case .joined(let acceptance):
      step.emit(.send(id, .joinAccepted(acceptance)))
      step.emit(.close(id, .stopping))
      closed(id, &step)
    case nil: break
    }
  }

  /// Sessions that have room, and are still to be told statements.
  var hasStatementsToSay: Bool { sessions.values.contains { $0.isWritable && !$0.outbox.isEmpty } }
}
