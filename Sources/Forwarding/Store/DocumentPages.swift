import Engine
import Replication
import Storage
import Wire

/// Adds documents to a page that reaches the end of the log. All is read from one state of the store, so no document stands on
/// a change that the ledger lacks once the batch is in.
struct DocumentPages {
  let fleet: FleetID
  let hash: HashFunction
  let lane: Lane

  /// Documents in one batch.
  static let documentLimit = 8_192

  /// What is left of the page.
  private struct Room {
    var bytes: Int
    var documents: Int
    /// What is in the page: one that a run wrote and that a pass comes by as well is there once.
    var places: Set<DocumentPlace> = []
    var isUsedUp: Bool { bytes <= 0 || documents <= 0 }
  }

  func add(
    _ request: Forwarder.LoadRequest, _ bytes: Int, _ store: StoreReader, _ page: inout Forwarder.Page
  ) throws {
    guard !request.isNarrowed || page.batch.hasNoLedgerRows else {
      page.hasMoreDocuments = true
      return
    }
    let used = page.batch.runs.reduce(0) { $0 + $1.body.count }
    var room = Room(
      bytes: max(1, bytes - used),
      documents: request.isNarrowed ? max(1, request.changes) : DocumentPages.documentLimit)
    if page.documents.due.count < DocumentProgress.dueLimit {
      try takeUpWhatMoved(room.bytes, store, &page)
    } else {
      // What moved is found from the position when there is room.
      page.hasMoreDocuments = true
    }
    try addDue(store, &page, &room)
    while !room.isUsedUp, page.documents.due.isEmpty, let partition = page.documents.passes.first {
      try pass(partition, store, &page, &room)
      if request.isNarrowed { break }
    }
    if !page.documents.due.isEmpty || !page.documents.passes.isEmpty { page.hasMoreDocuments = true }
    finish(&page)
  }

  /// What changed since the last time: by runs, or in another way.
  private func takeUpWhatMoved(_ bytes: Int, _ store: StoreReader, _ page: inout Forwarder.Page) throws {
    let end = try store.logEnd()
    guard let position = LogPosition(text: page.documents.position),
      let rebuilt = try store.partitionsRebuilt(since: position)
    else {
      page.documents.passes = try store.partitions().map(\.id).filter(lane.holds)
      (page.documents.passAfter, page.documents.position) = (nil, end.text)
      return
    }
    for partition in rebuilt where lane.holds(partition) { page.documents.addPass(partition) }
    let reader = RunReader(fleet: fleet, hash: hash)
    let limits = ArrivalLimits(bytes: bytes, changes: DocumentPages.documentLimit)
    let found = try store.runs(cameAfter: position.arrival, within: limits) { partition, _, _, _ in
      lane.holds(partition)
    }
    // What does not read may have written any of its partition.
    for run in found.unread { page.documents.addPass(run.partition) }
    for arrived in found.runs {
      do {
        let keys = try reader.documents(
          writtenBy: arrived.run.body, in: arrived.partition, apart: { try store.largePayload($0) })
        for key in keys { page.documents.due.insert(DocumentPlace(partition: arrived.partition, key: key)) }
      } catch let failure where DamagedLog.isOfOneRow(failure) {
        page.documents.addPass(arrived.partition)
      }
    }
    if !found.isAll { page.hasMoreDocuments = true }
    page.documents.position = found.isAll ? end.text : end.reaching(found.end).text
  }

  private func addDue(_ store: StoreReader, _ page: inout Forwarder.Page, _ room: inout Room) throws {
    for place in page.documents.due.sorted() {
      guard !room.isUsedUp else { return }
      page.documents.due.remove(place)
      guard let partition = try store.partition(place.partition), let name = partition.name else { continue }
      page.batch.partitions[place.partition] = name
      let row = try store.collectionNumber(place.key.collection).flatMap { collection throws(StoreError) in
        try store.document(partition.number, collection, key: place.key.id)
      }
      if let document = try document(place, row, &page.documents) { add(document, &page, &room) }
    }
  }

  // MARK: A whole partition

  /// Living documents behind the last that was read, with the range that they stand for.
  private func pass(
    _ id: PartitionID, _ store: StoreReader, _ page: inout Forwarder.Page, _ room: inout Room
  ) throws {
    var start = page.documents.passAfter
    guard let partition = try store.partition(id), let name = partition.name else { return endPass(&page) }
    func endRange(through key: DocumentKey?) {
      page.batch.ranges.append(LedgerBatch.DocumentRange(partition: id, after: start, through: key))
    }
    page.batch.partitions[id] = name
    for (collection, number) in try store.collections(of: partition.number) {
      if let reached = page.documents.passAfter, collection < reached.collection { continue }
      while true {
        let after = page.documents.passAfter.flatMap { $0.collection == collection ? $0.id : nil }
        let rows = try store.documents(
          partition.number, number, after: after, limit: min(room.documents, 512), byteLimit: room.bytes)
        guard !rows.isEmpty else { break }
        for row in rows {
          let place = DocumentPlace(partition: id, key: DocumentKey(collection: collection, id: row.key))
          if let document = try document(place, row, &page.documents) {
            add(document, &page, &room)
          } else {
            // What lies in no range stays as it is there.
            if let reached = page.documents.passAfter, reached != start { endRange(through: reached) }
            start = place.key
          }
          page.documents.passAfter = place.key
        }
        guard !room.isUsedUp else {
          if let reached = page.documents.passAfter, reached != start { endRange(through: reached) }
          return
        }
      }
    }
    endRange(through: nil)
    endPass(&page)
  }

  private func endPass(_ page: inout Forwarder.Page) {
    page.documents.passes.removeFirst()
    page.documents.passAfter = nil
  }

  // MARK: One document

  private func add(_ document: LedgerBatch.Document, _ page: inout Forwarder.Page, _ room: inout Room) {
    guard room.places.insert(document.place).inserted else { return }
    room.bytes -= document.byteCount
    room.documents -= 1
    page.batch.documents.append(document)
  }

  /// Nil for one that does not read: the backend keeps what it has of it, and gets it with all of its partition once its run came
  /// anew, or it was made anew here.
  private func document(
    _ place: DocumentPlace, _ row: DocumentRow?, _ progress: inout DocumentProgress
  ) throws -> LedgerBatch.Document? {
    guard let id = Value(canonicalID: place.key.id) else { return nil }
    var (document, state) = (LedgerBatch.Document(place), DocumentState?.none)
    do throws(StoreError) { state = try row.map { row throws(StoreError) in try DocumentState(stored: row) } } catch {
      guard error.isOfOneRow else { throw error }
      return nil
    }
    progress.note(place, isDeadLetter: false)
    if !id.holdsNull { document.id = ExtendedJSON.text(id) }
    guard let row, let state else { return document }
    (document.generation, document.isAlive, document.state) = (state.generation, state.isAlive, row.state)
    guard let body = state.shown() else {
      // Somebody wrote to it without knowing that it is deleted.
      if document.id != nil, !place.key.collection.holdsNull { document.conflicts = ConflictText.of(state) }
      return document
    }
    document.stateDigest = Digest.of(row.state, hash)
    if let refusal = progress.refusals[place], refusal.state == document.stateDigest {
      document.refusal = refusal.words
    } else if id.holdsNull || place.key.collection.holdsNull || Value.map(body).holdsNull {
      document.refusal = "it has the character U+0000, which PostgreSQL cannot hold"
    } else {
      document.body = ExtendedJSON.text(.map(body))
      document.conflicts = ConflictText.of(state)
    }
    if document.refusal != nil { progress.note(place, isDeadLetter: true) }
    return document
  }

  private func finish(_ page: inout Forwarder.Page) {
    // What the backend keeps speaks of all partitions.
    guard page.documents.isSettled, !page.hasMoreDocuments, lane.isWhole else { return }
    page.batch.documentPosition = KeptPosition(page.documents.position, by: page.documents.writer).text
    page.batch.documentPositionBefore = page.documents.kept
  }
}

extension DocumentProgress {
  /// Goes on where the backend says; what it lacks the body of is sent again.
  init(_ start: DocumentStart) {
    self.init()
    begin(at: start.position)
    takeUp(
      start.deadLetters.map(\.place), due: start.dueDeadLetters?.map(\.place), isAll: start.hasAllDeadLetters)
  }
}
