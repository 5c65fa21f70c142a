import Replication

extension Node {
  package func subscriptions() throws(NodeError) -> [Text] { try onEngine { $0.subscriptions.sorted() } }
}
