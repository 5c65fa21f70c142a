import Engine
import Identity
import Replication

extension Node {
  @discardableResult
  package func subscribe(_ pattern: Text) throws(NodeError) -> [String] {
    guard !Interest(pattern: pattern, EngineIdentity(files)).isEmpty else {
      throw NodeError(.badRequest, "\(pattern.string) is neither a partition's name nor a prefix followed by *")
    }
    try follow(pattern, isWanted: true)
    return notes(on: pattern)
  }

  /// What nobody will hand in, as long as it is so. Of a prefix nothing is known before a partition is met.
  private func notes(on pattern: Text) -> [String] {
    guard let name = try? PartitionName(pattern), name.takesDocuments else { return [] }
    let taken =
      pattern.utf8.contains(UInt8(ascii: "*"))
      ? ["\(pattern.string) is taken as a name: * stands for more at the end alone"] : []
    return taken + rights(to: name)
  }

  private func rights(to name: PartitionName) -> [String] {
    let (authority, device) = (authority.now, files.deviceKey.publicKey)
    guard authority.level(of: device, in: name) < .carry else { return [] }
    log.notice("wants a partition that this device may not hold", ["partition": name.text.string])
    let standing = RightsWords(authority).standing(of: device, in: name)
    return ["this device may not hold \(name.text.string), so that nothing of it comes: \(standing)"]
  }

  package func unsubscribe(_ pattern: Text) throws(NodeError) {
    let wanted = try subscriptions()
    guard wanted.contains(pattern) else {
      let wider = wanted.filter { isWithin($0, pattern) }.map(\.string).joined(separator: " and ")
      let reason = wider.isEmpty ? "" : " itself: it is wanted by \(wider); unsubscribe from that"
      throw NodeError(.notFound, "there is no subscription to \(pattern.string)\(reason)")
    }
    try follow(pattern, isWanted: false)
  }

  private func isWithin(_ wider: Text, _ pattern: Text) -> Bool {
    Interest(pattern: wider, EngineIdentity(files)).prefixes.contains { pattern.utf8.starts(with: $0.utf8) }
  }

  private func follow(_ pattern: Text, isWanted: Bool) throws(NodeError) {
    try engine.checkIsOpen()
    let reply = Reply<Result<Void, NodeError>>()
    let job = SubscriptionJob(pattern: pattern, isWanted: isWanted) { [board = engine.board] result in
      board.noteAnswer()
      reply.fulfil(result.mapError(NodeError.init(any:)))
    }
    guard engine.inbox.put(.event(.subscription(job))) else { throw EngineLine.stopping }
    try engine.answer(of: reply).get()
  }

  package func subscriptions() throws(NodeError) -> [Text] { try engine.ask { $0.state.subscriptions.sorted() } }
}
