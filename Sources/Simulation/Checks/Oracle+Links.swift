import Replication

// What leaves a node over a link that lets less pass.
extension Oracle {
  /// No partition is named that the link did not let pass when the session began.
  func checkLink(_ message: Message, _ node: SimulatedNode, _ link: NodePorts.Link) {
    let names: [PartitionName] =
      switch message {
      case .have(let vector), .pull(_, let vector): [vector.name]
      case .vectors(let vectors): vectors.map(\.name)
      case .runs(let batch): [batch.name]
      case .payloadPiece(let piece): [piece.name]
      case .chainProbe(let probe): [probe.name]
      case .statementSet(let set): PartitionName(roomOf: set.scope).map { [$0] } ?? []
      case .statements(_, let scope): PartitionName(roomOf: scope).map { [$0] } ?? []
      default: []
      }
    guard let stray = names.first(where: { !link.state.lets($0) }) else { return }
    world.violate("link", "node \(node.slot) speaks of \(stray.text.string) over a link that does not carry it")
  }
}
