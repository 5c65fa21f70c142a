import Forwarding
import Replication

/// A row of the backend's documents.
struct ModelDocument: Equatable {
  /// Extended JSON; nil where the backend cannot hold it.
  var id: String?
  var isAlive: Bool
  var body: String?
  var state: [UInt8]
  var refusal: String?
  var conflicts: String?
  var judge: DeviceID
  /// Who wrote it did not know all that the ledger had.
  var isUnsure: Bool

  init(_ document: LedgerBatch.Document, _ judge: DeviceID, isUnsure: Bool) {
    self.isUnsure = isUnsure
    (id, isAlive, body, state) = (document.id, document.isAlive, document.body, document.state)
    (refusal, conflicts, self.judge) = (document.refusal, document.conflicts, judge)
  }

  func says(_ document: LedgerBatch.Document) -> Bool {
    state == document.state && isAlive == document.isAlive && refusal == document.refusal && body == document.body
  }

  /// No change to it counts any more.
  mutating func end(_ judge: DeviceID, isUnsure: Bool) {
    (isAlive, body, state, refusal, self.judge, self.isUnsure) = (false, nil, [], nil, judge, isUnsure)
  }
}

extension ModelLedger {
  mutating func writeDocuments(
    of batch: LedgerBatch, by relay: DeviceID, _ outcome: inout AppendOutcome
  ) throws(BackendProblem) {
    guard batch.documentPosition.isEmpty || batch.documentPositionBefore == positions[relay] ?? "" else {
      throw BackendProblem(.gap, "a position that does not go on from the one that is kept")
    }
    if let step = batch.step {
      let last = steps[relay]?[step.writer] ?? 0
      // One that comes twice is there.
      guard last == step.before || last == step.number else {
        throw BackendProblem(.gap, "documents that do not go on from those that are there")
      }
      steps[relay, default: [:]][step.writer] = step.number
    }
    let ahead = Set(batch.documentPartitions.filter { isAhead(of: batch, in: $0) })
    for (index, document) in batch.documents.enumerated() {
      let old = documents[document.place]
      if let old, ahead.contains(document.place.partition), old.judge != relay, old.state != document.state {
        outcome.staleDocuments.append(index)
        continue
      }
      if document.isAlive, document.refusal == nil, rejects(document.stateDigest) {
        throw BackendProblem(.rejected, "not this one")
      }
      let isForgotten = bug == .documentForgotten && document.stateDigest.words.1 % 5 == 0
      let isUnsure = ahead.contains(document.place.partition)
      if old?.says(document) != true || old?.isUnsure == true && !isUnsure, !isForgotten {
        documents[document.place] = ModelDocument(document, relay, isUnsure: isUnsure)
      }
    }
    let sent = Set(batch.documents.map(\.place))
    for (index, range) in batch.ranges.enumerated() {
      let gone = documents.filter { $0.value.isAlive && range.holds($0.key) && !sent.contains($0.key) }
      for (place, row) in gone {
        if ahead.contains(range.partition), row.judge != relay {
          if outcome.staleRanges.last != index { outcome.staleRanges.append(index) }
        } else {
          documents[place]?.end(relay, isUnsure: ahead.contains(range.partition))
        }
      }
    }
    guard !batch.documentPosition.isEmpty, outcome.staleDocuments.isEmpty, outcome.staleRanges.isEmpty else { return }
    positions[relay] = batch.documentPosition
  }

  func documentNews(of relay: DeviceID, _ process: String) -> DocumentNews {
    var news = DocumentNews()
    (news.position, news.step, news.ledger) = (positions[relay] ?? "", steps[relay]?[process] ?? 0, state)
    news.unsure = documents.filter(\.value.isUnsure).map(\.key).sorted()
    return news
  }

  func documentStart(of relay: DeviceID, _ process: String) -> DocumentStart {
    var start = DocumentStart()
    (start.position, start.step, start.ledger) = (positions[relay] ?? "", steps[relay]?[process] ?? 0, state)
    start.deadLetters = documents.filter { $0.value.refusal != nil }.sorted { $0.key < $1.key }.map { place, row in
      DeadLetter(place: place, partition: partitions[place.partition]?.text.string, reason: row.refusal ?? "")
    }
    return start
  }
}

extension LedgerBatch.DocumentRange {
  fileprivate func holds(_ place: DocumentPlace) -> Bool {
    place.partition == partition && (after.map { $0 < place.key } ?? true) && (through.map { place.key <= $0 } ?? true)
  }
}
