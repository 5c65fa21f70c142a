import Replication

/// Who sent each run to whom, and what the sender could know by then of who else brings it: by what was said on the wire.
struct CopyBook {
  /// One that went out, on which connection.
  struct Copy {
    let slot: Int
    let connection: UInt64
  }

  /// One life of one node.
  struct Reader: Hashable {
    let slot: Int
    let life: Int
  }

  /// Why a run may go to one who has it, or to whom it has gone before.
  enum Excuse: CaseIterable {
    /// Its chain has forks, or somebody in the world keeps to no rule.
    case disorder
    /// The reader asked for the stream, and has not named the run.
    case asked
    /// What went before was lost with its connection.
    case lost
    /// Its author brings it to all with whom he is linked.
    case own
    /// The reader is linked neither with who brought it to the sender nor with its author, as far as it has said.
    case strangers
    /// It comes behind something of which the sender knows nobody who brings it.
    case gap
  }

  /// What the sender of a stream knows of its reader.
  struct View {
    /// What the reader said that it has.
    fileprivate(set) var told: [ReplicaID: UInt64] = [:]
    fileprivate var sent: [ReplicaID: UInt64] = [:]
    /// What the sender leaves to others.
    fileprivate(set) var left: [ReplicaID: UInt64] = [:]
    /// What the sender held when the stream was asked for.
    fileprivate(set) var heldWhenAsked: [ReplicaID: UInt64] = [:]
    /// Something went out on it, or it was asked for.
    fileprivate(set) var isOpen = false

    func covers(_ replica: ReplicaID, _ sequence: UInt64) -> Bool {
      max(told[replica] ?? 0, sent[replica] ?? 0, left[replica] ?? 0) >= sequence
    }
  }

  /// What a node was handed and has not taken yet.
  struct Heard {
    let connection: UInt64
    /// The hearer's.
    let side: Int
    let message: Message
  }

  private var copies: [Reader: [Int: [Copy]]] = [:]
  private var views: [SentBook.Stream: View] = [:]
  /// By connection and the hearer's side: with whom the other is linked.
  private var neighbours: [End: Set<DeviceMark>] = [:]
  /// Chains that the reader wants to have from the sender of the stream, whoever else brings them.
  private var eager: [SentBook.Stream: Set<ReplicaID>] = [:]
  private var heard: [Reader: [Heard]] = [:]

  private struct End: Hashable {
    let connection: UInt64
    let side: Int
  }

  subscript(stream: SentBook.Stream) -> View { views[stream] ?? View() }

  func copies(of run: Int, to reader: Reader) -> [Copy] { copies[reader]?[run] ?? [] }

  func isLinked(_ end: (connection: UInt64, side: Int), with device: DeviceMark) -> Bool {
    neighbours[End(connection: end.connection, side: end.side)]?.contains(device) ?? false
  }

  // MARK: What is sent

  mutating func note(_ run: KnownRun, by slot: Int, to reader: Reader, on stream: SentBook.Stream) {
    copies[reader, default: [:]][run.number, default: []].append(Copy(slot: slot, connection: stream.connection))
    views[stream, default: View()].isOpen = true
    let before = views[stream]?.sent[run.replica] ?? 0
    views[stream]?.sent[run.replica] = max(before, run.last)
  }

  mutating func leave(_ run: KnownRun, on stream: SentBook.Stream) {
    guard eager[stream]?.contains(run.replica) != true else { return }
    let before = views[stream]?.left[run.replica] ?? 0
    views[stream]?.left[run.replica] = max(before, run.last)
  }

  /// What the two ends have in common has changed.
  mutating func forget(_ connection: UInt64) {
    for stream in views.keys where stream.connection == connection { views[stream] = nil }
  }

  mutating func ended(_ connection: UInt64) {
    forget(connection)
    for stream in eager.keys where stream.connection == connection { eager[stream] = nil }
    for side in 0...1 { neighbours[End(connection: connection, side: side)] = nil }
  }

  // MARK: What is heard

  /// Handed to a node. What may let something be sent counts from now on; what forbids it from when the node has taken it.
  mutating func hear(_ message: Heard, at reader: Reader) {
    heard[reader, default: []].append(message)
    switch message.message {
    case .pull(_, let vector): views[stream(message, vector.name)] = nil
    case .neighbours(let news) where !news.removed.isEmpty:
      takeBackLeft(message)
      neighbours[End(connection: message.connection, side: message.side)]?.subtract(news.removed)
    case .pushChoice(let choice):
      let stream = stream(message, choice.name)
      eager[stream, default: []].formUnion(choice.eager)
      takeBackLeft(choice, on: stream)
    default: break
    }
  }

  /// A neighbour of who says so is gone: nothing is left to others for it.
  private mutating func takeBackLeft(_ heard: Heard) {
    for stream in views.keys where stream.connection == heard.connection && stream.side == heard.side {
      views[stream]?.left = [:]
    }
  }

  private func stream(_ heard: Heard, _ name: PartitionName) -> SentBook.Stream {
    SentBook.Stream(connection: heard.connection, side: heard.side, partition: name)
  }

  mutating func takeHeard(_ reader: Reader) -> [Heard] { heard.removeValue(forKey: reader) ?? [] }

  /// - Parameter held: what the hearer holds of the partition. Of chains that it does not know it need not keep a word.
  mutating func take(_ vector: PartitionVector, _ message: Heard, held: [ReplicaID: UInt64]) {
    var view = views[stream(message, vector.name)] ?? View()
    for (replica, position) in vector.vector.entries where held[replica] != nil {
      view.told[replica] = max(view.told[replica] ?? 0, position.sequence)
    }
    if case .pull = message.message { (view.isOpen, view.heldWhenAsked) = (true, held) }
    views[stream(message, vector.name)] = view
  }

  /// The hearer may have left something in the same turn, before it came to this.
  mutating func take(_ choice: PushChoice, _ message: Heard) {
    let stream = stream(message, choice.name)
    takeBackLeft(choice, on: stream)
    // An earlier word of the same turn may have ended what `hear` noted of this one.
    eager[stream] = eager[stream, default: []].subtracting(choice.lazy.union(choice.released)).union(choice.eager)
  }

  /// Of chains that it is to push, or decides of again, the hearer sends what it had left.
  private mutating func takeBackLeft(_ choice: PushChoice, on stream: SentBook.Stream) {
    for replica in choice.eager.union(choice.released) { views[stream]?.left[replica] = nil }
  }

  mutating func take(_ news: NeighbourNews, _ message: Heard) {
    // The hearer may have left something in the same turn, before it came to this.
    if !news.removed.isEmpty { takeBackLeft(message) }
    let end = End(connection: message.connection, side: message.side)
    neighbours[end] = neighbours[end, default: []].subtracting(news.removed).union(news.added)
  }
}
