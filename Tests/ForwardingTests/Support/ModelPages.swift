import Replication

@testable import Forwarding

/// Pages of a model's store, as the page reader makes them of a real one.
struct ModelPages {
  let store: ModelStore
  /// Documents of one batch.
  var documentRoom = 5

  func page(_ request: Forwarder.LoadRequest) -> Forwarder.Page {
    var page = Forwarder.Page()
    page.documents = request.documents
    for cut in store.cuts where !request.view.statements.contains(cut.id) {
      page.batch.statements.append(LedgerBatch.Statement(id: cut.id, encoded: [1]))
    }
    page.statementsEnd = Int64(store.cuts.count)
    (page.runsEnd, page.isEnd) = (request.runsAfter, true)
    for (index, run) in store.log.enumerated().dropFirst(Int(request.runsAfter)) {
      guard page.batch.runs.count < request.changes else {
        page.isEnd = false
        break
      }
      page.runsEnd = Int64(index + 1)
      if request.view.lacks(run.chain, through: run.last, arrival: Int64(index + 1)) { page.batch.runs.append(run) }
    }
    guard page.isEnd else { return page }
    for (partition, vector) in request.unmarked {
      for (replica, position) in vector.sorted {
        let chain = ChainKey(partition: partition, replica: replica)
        guard request.view.marks[chain] != position, position.sequence <= store.received(chain) else { continue }
        page.batch.marks.append(LedgerBatch.Mark(chain: chain, position: position))
      }
      page.marked[partition] = vector
    }
    addDocuments(request, &page)
    page.batch.heads = store.chains.map {
      LedgerBatch.Head(chain: $0, highest: store.received($0), isForked: false)
    }
    let brought = page.batch.statements.map(\.id)
    page.batch.knownStatements = ModelStore.sum(
      store.cuts.map(\.id).filter { request.view.statements.contains($0) || brought.contains($0) })
    return page
  }

  private func addDocuments(_ request: Forwarder.LoadRequest, _ page: inout Forwarder.Page) {
    guard !request.isNarrowed || page.batch.hasNoLedgerRows else {
      page.hasMoreDocuments = true
      return
    }
    let parts = page.documents.position.split(separator: ".").compactMap { Int($0) }
    if parts.count == 2, parts[1] == store.cuts.count {
      page.documents.due.formUnion(store.log.dropFirst(parts[0]).map(ModelStore.place))
    } else {
      (page.documents.passes, page.documents.passAfter) = (Set(store.log.map(\.chain.partition)).sorted(), nil)
    }
    page.documents.position = store.position
    let room = request.isNarrowed ? max(1, request.changes) : documentRoom
    for place in page.documents.due.sorted() where page.batch.documents.count < room {
      page.documents.due.remove(place)
      page.batch.documents.append(document(place, &page.documents))
    }
    while page.documents.due.isEmpty, page.batch.documents.count < room, let partition = page.documents.passes.first {
      let after = page.documents.passAfter
      // What nothing counts of is not there.
      let rest = store.places(partition).filter { place in
        (after.map { $0 < place.key } ?? true) && !store.state(place).isEmpty
      }
      let sent = Set(page.batch.documents.map(\.place))
      for place in rest.prefix(room - page.batch.documents.count) {
        if !sent.contains(place) { page.batch.documents.append(document(place, &page.documents)) }
        page.documents.passAfter = place.key
      }
      let isWhole = page.documents.passAfter == rest.last?.key || rest.isEmpty
      page.batch.ranges.append(
        LedgerBatch.DocumentRange(
          partition: partition, after: after, through: isWhole ? nil : page.documents.passAfter))
      guard isWhole else { break }
      page.documents.passes.removeFirst()
      page.documents.passAfter = nil
      if request.isNarrowed { break }
    }
    page.hasMoreDocuments = !page.documents.due.isEmpty || !page.documents.passes.isEmpty
    guard page.documents.isSettled, !page.hasMoreDocuments else { return }
    page.batch.documentPosition = KeptPosition(page.documents.position, by: page.documents.writer).text
    page.batch.documentPositionBefore = page.documents.kept
  }

  private func document(_ place: DocumentPlace, _ progress: inout DocumentProgress) -> LedgerBatch.Document {
    var document = LedgerBatch.Document(place)
    document.state = store.state(place)
    document.isAlive = !document.state.isEmpty
    document.stateDigest = Digest(words: (UInt64(document.state.count), UInt64(document.state.last ?? 0), 0, 0))
    progress.note(place, isDeadLetter: false)
    if document.isAlive, let refusal = progress.refusals[place], refusal.state == document.stateDigest {
      document.refusal = refusal.words
      progress.note(place, isDeadLetter: true)
    }
    return document
  }
}
