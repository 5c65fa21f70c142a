import Replication

/// How far the backend's documents follow this store's. The backend keeps ``position`` with them, so that both go back together
/// where it is put back from a copy.
package struct DocumentProgress: Equatable, Sendable {
  /// Documents that runs wrote up to here were sent, but for what is named below; empty: none is known to have been.
  /// On the log's own form.
  package var position = ""
  /// What of that the backend keeps.
  package private(set) var kept = ""
  /// Who wrote ``kept``, where this process goes on from it; ``nobody``: it does not, and a memory must not vouch for it.
  package private(set) var keptBy = DocumentProgress.nobody
  /// The process that writes ``kept`` down.
  package private(set) var writer = ""
  /// Partitions all of whose documents are to be sent; of the first those behind ``passAfter``.
  package var passes: [PartitionID] = []
  package var passAfter: DocumentKey?
  /// To be sent next.
  package var due: Set<DocumentPlace> = []
  /// Left alone by the backend, since another relay may know more: sent again when something has moved.
  package var staleDocuments: Set<DocumentPlace> = []
  package var stalePartitions: Set<PartitionID> = []
  /// What the backend refused.
  package private(set) var refusals: [DocumentPlace: Refusal] = [:]
  /// Known to be there without a body.
  package private(set) var deadLetters: Set<DocumentPlace> = []
  /// The backend has more of them than are known here: it tells of the next when it is asked again.
  package private(set) var hasMoreDeadLetters = false

  /// It stands as long as the document is the one that was refused: another one may be held.
  package struct Refusal: Equatable, Sendable {
    package let state: Digest
    /// The backend's own.
    package let words: String
    package init(of state: Digest, words: String) { (self.state, self.words) = (state, words) }
  }

  package init() {}

  static let nobody = "-"
  /// More stale documents than these are found again by a pass.
  static let staleLimit = 16_384
  /// With so many due the log is not looked at for more; what one page of it has may pass this.
  static let dueLimit = 16_384
  /// More dead letters than these are known to the backend alone.
  static let deadLetterLimit = 16_384
  /// Older refusals than these are forgotten: if such a document is sent again, the backend refuses it again.
  static let refusalLimit = 1_024

  package var hasDeadLetters: Bool { !deadLetters.isEmpty || hasMoreDeadLetters }

  /// What the backend says at a connection: where it goes on.
  mutating func begin(at position: String) { (self.position, kept) = (position, position) }

  /// Goes on only where this process, or this directory, knows to have been.
  mutating func resume(as process: String, _ memory: LedgerMemory?) {
    writer = process
    let found = KeptPosition(text: kept)
    position = found?.resumed(by: process, memory) ?? ""
    keptBy = position.isEmpty ? DocumentProgress.nobody : found?.writer ?? DocumentProgress.nobody
  }

  /// What the backend says at a connection: what it lacks the body of is due again.
  ///
  /// - Parameter due: those whose turn it is; nil: all.
  mutating func takeUp(_ letters: some Sequence<DocumentPlace>, due: [DocumentPlace]? = nil, isAll: Bool) {
    deadLetters = Set(letters)
    self.due.formUnion(due.map { Set($0) } ?? deadLetters)
    hasMoreDeadLetters = !isAll
  }

  /// A document is about to be sent, with or without its body.
  mutating func note(_ place: DocumentPlace, isDeadLetter: Bool) {
    guard isDeadLetter else {
      deadLetters.remove(place)
      return
    }
    if deadLetters.count < DocumentProgress.deadLetterLimit || deadLetters.contains(place) {
      deadLetters.insert(place)
    } else {
      hasMoreDeadLetters = true
    }
  }

  mutating func refuse(_ document: LedgerBatch.Document, _ words: String) {
    if refusals.count >= DocumentProgress.refusalLimit { refusals.removeAll() }
    refusals[document.place] = Refusal(of: document.stateDigest, words: words)
  }

  /// At the same place, with nothing known of what is left.
  var elsewhere: DocumentProgress {
    var progress = DocumentProgress()
    (progress.position, progress.kept, progress.keptBy, progress.writer) = (position, kept, keptBy, writer)
    return progress
  }

  /// All that is known of is sent.
  package var isSettled: Bool {
    passes.isEmpty && due.isEmpty && staleDocuments.isEmpty && stalePartitions.isEmpty
  }

  /// There may be news of other relays: what was stale is tried again.
  mutating func takeUpStale() {
    due.formUnion(staleDocuments)
    for partition in stalePartitions.sorted() { addPass(partition) }
    staleDocuments.removeAll()
    stalePartitions.removeAll()
  }

  mutating func addPass(_ partition: PartitionID) {
    if passes.first == partition { passAfter = nil }
    if !passes.contains(partition) { passes.append(partition) }
  }

  mutating func note(_ outcome: AppendOutcome, of batch: LedgerBatch) {
    if !batch.documentPosition.isEmpty, outcome.staleDocuments.isEmpty, outcome.staleRanges.isEmpty {
      kept = batch.documentPosition
      keptBy = KeptPosition(text: kept)?.writer ?? DocumentProgress.nobody
    }
    for index in outcome.staleDocuments where batch.documents.indices.contains(index) {
      let place = batch.documents[index].place
      if staleDocuments.count < DocumentProgress.staleLimit {
        staleDocuments.insert(place)
      } else {
        stalePartitions.insert(place.partition)
      }
    }
    for index in outcome.staleRanges where batch.ranges.indices.contains(index) {
      stalePartitions.insert(batch.ranges[index].partition)
    }
  }
}
