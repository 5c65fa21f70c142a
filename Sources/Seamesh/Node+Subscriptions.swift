import Engine
import Replication

extension Node {
  package func subscribe(_ pattern: Text) throws(NodeError) {
    guard !Interest(pattern: pattern, EngineIdentity(files)).isEmpty else {
      throw NodeError(.badRequest, "\(pattern.string) is neither a partition's name nor a prefix followed by *")
    }
    try follow(pattern, isWanted: true)
  }

  package func unsubscribe(_ pattern: Text) throws(NodeError) {
    guard try subscriptions().contains(pattern) else {
      throw NodeError(.notFound, "there is no subscription to \(pattern.string)")
    }
    try follow(pattern, isWanted: false)
  }

  private func follow(_ pattern: Text, isWanted: Bool) throws(NodeError) {
    guard !isStopping else { throw NodeError(.stopping, "the node is stopping") }
    let reply = Reply<Result<Void, NodeError>>()
    let job = SubscriptionJob(pattern: pattern, isWanted: isWanted) { result in
      reply.fulfil(result.mapError(NodeError.init(any:)))
    }
    guard inbox.put(.event(.subscription(job))) else { throw NodeError(.stopping, "the node is stopping") }
    try reply.wait().get()
  }

  package func subscriptions() throws(NodeError) -> [Text] { try onEngine { $0.state.subscriptions.sorted() } }
}
