import Engine
import Replication
import Wire

/// How often a run goes to one node: once, but for what excuses each further copy. Nothing goes out that the peer has said to
/// have, or that others bring who are linked with it (decision 44).
struct CopyCheck: Check {
  let known: Knowledge
  private var book = CopyBook()
  /// What the turn that is under way leaves to others.
  private var leaving: [Leaving] = []

  private struct Leaving {
    let reader: CopyBook.Reader
    let run: KnownRun
    let stream: SentBook.Stream
    /// Over which the run had come.
    let connections: [UInt64]
  }

  init(_ known: Knowledge) { self.known = known }

  // MARK: What is known

  /// A frame was handed to the node at the end of a connection.
  mutating func delivered(_ frame: [UInt8], to node: SimulatedNode, on connection: UInt64, side: Int) {
    guard CopyCheck.isOfCopies(frame), let message = try? MessageCodec.decode(frame[...]) else { return }
    let heard = CopyBook.Heard(connection: connection, side: side, message: message)
    book.hear(heard, at: CopyBook.Reader(slot: node.slot, life: node.life))
  }

  /// `have`, `pull`, `vectors`, `neighbours` and `pushChoice`: an array, and its first item. Others need not be read once more.
  private static func isOfCopies(_ frame: [UInt8]) -> Bool {
    guard frame.count > 2 else { return false }
    return [11, 12, 15].contains(frame[1]) || frame[1] == 24 && [65, 66].contains(frame[2])
  }

  /// A turn has taken what was handed in before it.
  mutating func takenIn(by node: SimulatedNode) {
    // A turn may close what a run had come over before it decides who brings it: it knows of nobody then, and passes it on.
    let reader = CopyBook.Reader(slot: node.slot, life: node.life)
    for item in leaving where item.reader == reader && item.connections.allSatisfy({ isOpen($0, at: node) }) {
      book.leave(item.run, on: item.stream)
    }
    leaving = []
    for heard in book.takeHeard(reader) {
      switch heard.message {
      case .have(let vector), .pull(_, let vector): take([vector], heard, node)
      case .vectors(let vectors): take(vectors, heard, node)
      case .neighbours(let news): book.take(news, heard)
      case .pushChoice(let choice): book.take(choice, heard)
      default: break
      }
    }
  }

  private mutating func take(_ vectors: [PartitionVector], _ heard: CopyBook.Heard, _ node: SimulatedNode) {
    for vector in vectors {
      let held = node.directory.book.partitions[world.fleet.partition(vector.name)]?.reached ?? [:]
      book.take(vector, heard, held: held)
    }
  }

  private func isOpen(_ connection: UInt64, at node: SimulatedNode) -> Bool {
    world.connections[connection]?.ends.contains { $0.slot == node.slot && !$0.isClosed } == true
  }

  // MARK: What is left to others

  /// What came from others is left to them for each peer that is linked with all of them.
  mutating func committed(_ commit: ObservedCommit, by process: NodeProcess) {
    let runs = commit.appended.compactMap { known.library.known($0.run.body, in: $0.chain.partition) }
    let node = process.node
    let reader = CopyBook.Reader(slot: node.slot, life: node.life)
    let links = process.ports.links.values
    for run in runs where !run.isSigned(by: node.key.publicKey) && !isInDisorder(run) {
      guard let name = node.directory.book.partitions[run.partition]?.name else { continue }
      let brought = book.copies(of: run.number, to: reader)
      guard !brought.isEmpty, brought.allSatisfy({ copy in links.contains { $0.connection == copy.connection } }) else {
        continue
      }
      for link in links {
        let stream = SentBook.Stream(connection: link.connection, side: link.side, partition: name)
        let view = book[stream]
        guard view.isOpen, run.first == 1 || view.covers(run.replica, run.first - 1),
          brought.allSatisfy({ isLinked(link, withNodeAt: $0.slot) && !isCopied($0.slot) })
        else { continue }
        let connections = brought.map(\.connection)
        leaving.append(Leaving(reader: reader, run: run, stream: stream, connections: connections))
      }
    }
  }

  private func isLinked(_ link: NodePorts.Link, withNodeAt slot: Int) -> Bool {
    book.isLinked((link.connection, link.side), with: DeviceMark(world.nodes[slot].key.device))
  }

  /// Whoever is linked with its device may be linked with a copy of it.
  private func isCopied(_ slot: Int) -> Bool {
    world.nodes.contains { $0.slot != slot && $0.key.device == world.nodes[slot].key.device }
  }

  private func isInDisorder(_ run: KnownRun) -> Bool {
    mayFork(run.replica) || known.wasNarrowed || world.options.builds != nil || world.nodes.contains { $0.liar != nil }
  }

  // MARK: What is sent

  mutating func check(_ message: Message, by node: SimulatedNode, over link: NodePorts.Link) {
    switch message {
    // What the two have in common has changed.
    case .interestChange: book.forget(link.connection)
    case .runs(let batch): check(batch, node, link)
    default: break
    }
  }

  mutating func ended(_ connection: UInt64) { book.ended(connection) }

  private mutating func check(_ batch: RunBatch, _ node: SimulatedNode, _ link: NodePorts.Link) {
    let peer = world.nodes[link.remoteSlot]
    guard !batch.isForkEvidence, peer.process != nil else { return }
    let partition = world.fleet.partition(batch.name)
    let held = peer.directory.book.partitions[partition]?.held ?? []
    let reader = CopyBook.Reader(slot: peer.slot, life: peer.life)
    let stream = SentBook.Stream(connection: link.connection, side: link.side, partition: batch.name)
    for entry in batch.entries {
      guard let run = known.library.known(entry.encoded, in: partition) else { continue }
      defer { book.note(run, by: node.slot, to: reader, on: stream) }
      guard node.isJudged else { continue }
      if !isInDisorder(run), link.fullSince == nil { checkNeeded(run, book[stream], node, peer) }
      world.count(.runSent)
      let earlier = book.copies(of: run.number, to: reader)
      if !earlier.isEmpty || held.contains(run.number) {
        world.count(.runSentAgain)
        let isLost = !held.contains(run.number) && earlier.allSatisfy { world.connections[$0.connection] == nil }
        world.count(occurrence(of: excuse(run, on: stream, node, link, isLost: isLost)))
      }
    }
  }

  private func checkNeeded(_ run: KnownRun, _ view: CopyBook.View, _ node: SimulatedNode, _ peer: SimulatedNode) {
    func violate(_ why: String) {
      world.violate("copies", "node \(node.slot) sends run \(run.replica) \(run.first) to node \(peer.slot), \(why)")
    }
    if let told = view.told[run.replica], told >= run.last { violate("which has said to have it") }
    if let left = view.left[run.replica], left >= run.last { violate("to which others bring it") }
  }

  private func excuse(
    _ run: KnownRun, on stream: SentBook.Stream, _ node: SimulatedNode, _ link: NodePorts.Link, isLost: Bool
  ) -> CopyBook.Excuse {
    if isInDisorder(run) { return .disorder }
    if isLost { return .lost }
    if run.isSigned(by: node.key.publicKey) { return .own }
    let view = book[stream]
    if view.heldWhenAsked[run.replica] ?? 0 >= run.last { return .asked }
    let brought = book.copies(of: run.number, to: CopyBook.Reader(slot: node.slot, life: node.life))
    let isLinked = !brought.isEmpty && brought.allSatisfy { self.isLinked(link, withNodeAt: $0.slot) }
    return isLinked ? .gap : .strangers
  }

  private func occurrence(of excuse: CopyBook.Excuse) -> Occurrence {
    switch excuse {
    case .disorder: .copyInDisorder
    case .asked: .copyAsked
    case .lost: .copyLost
    case .own: .copyOfAuthor
    case .strangers: .copyOfStranger
    case .gap: .copyBehindGap
    }
  }
}
