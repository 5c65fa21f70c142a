@testable import Replication

/// A partition as a node keeps it: a log, and documents of which only those are built anew that an event touches.
struct KeptPartition {
  private(set) var log: PartitionLog
  private(set) var documents: [DocumentKey: DocumentState] = [:]
  /// How many events had come when a document first was not as it is when it is built from nothing. What comes later builds
  /// most of them anew, and would hide it.
  private(set) var firstOutdated: Int?
  private var heard: [Statement] = []
  private var runs: [RunSummary] = []
  private let contents: [Digest: WrittenContent]
  /// Changes whose content is here.
  private var here: [Digest: WrittenContent] = [:]

  init(_ history: JudgedHistory, _ events: [JudgedHistory.Event]) throws {
    contents = history.contents
    log = PartitionLog(
      history.partition, authority: Authority(named: []), genesis: ChainsHistory.genesis)
    for (number, event) in events.enumerated() {
      try meet(event)
      if firstOutdated == nil, documents != built() { firstOutdated = number + 1 }
    }
  }

  private mutating func meet(_ event: JudgedHistory.Event) throws {
    let change: LogChange
    switch event {
    case .statement(let statement):
      // Those before it may come later: all are asked again.
      heard.append(statement)
      let authority = Authority(named: heard)
      change = try settled { $0.adopt(authority) }
    case .run(let run, let content):
      change = try settled { $0.learn(run, content: content) }
      if content {
        runs.append(run)
        for hash in run.hashes { here[hash] = contents[hash] }
      }
    }
    rebuild(above: log.lowestMoved(by: [change]))
  }

  private mutating func settled(_ ask: (inout PartitionLog) -> PartitionLog.Outcome) throws -> LogChange {
    while true {
      switch ask(&log) {
      case .ignored: return LogChange()
      case .done(let change): return change
      case .needsHeaders(let requests):
        for request in requests {
          try log.unfold(
            request,
            runs: runs.filter { $0.replica == request.replica && $0.last >= request.sequences.lowerBound })
        }
      }
    }
  }

  /// Accepted changes that have effect.
  var effective: [Digest: WrittenContent] { here.filter { log.hasEffect($0.key, at: $0.value.dot) } }

  private mutating func rebuild(above lowest: [ReplicaID: UInt64]) {
    let touched = Set(here.values.filter { $0.dot.sequence > lowest[$0.dot.replica] ?? .max }.flatMap(\.documents))
    guard !touched.isEmpty else { return }
    let built = built()
    for key in touched { documents[key] = built[key] }
  }

  /// All documents, from all that counts.
  private func built() -> [DocumentKey: DocumentState] {
    let writes = effective.values.flatMap { content in
      let context = WriteContext(
        dot: content.dot, timestamp: content.timestamp, context: content.context,
        sight: log.sight(of: content.context, author: content.dot))
      return content.writes.map { AcceptedWrite(context, $0) }
    }
    return Dictionary(grouping: writes) { DocumentKey(collection: $0.write.collection, id: $0.write.id) }
      .mapValues { DocumentState.merged(of: $0) }
  }
}

extension WrittenContent {
  fileprivate var documents: [DocumentKey] { writes.map { DocumentKey(collection: $0.collection, id: $0.id) } }
}
