import Engine
import Replication
import Synchronization

/// What somebody asked a document to be, as the edit said in the transaction that writes it.
struct Intent: Sendable {
  enum Wanted: Sendable {
    case body(ValueMap, hints: WriteHints)
    case gone
    /// This is shown, and the conflicts are open no more (rule M16).
    case decided(ValueMap?, closing: [Conflict])
    /// Of somebody who read elsewhere: what came since stays beside it.
    case merged
  }

  struct Place: Hashable {
    let partition: PartitionName
    let key: DocumentKey
  }

  /// Number of the job that the edit belongs to.
  let job: Int
  let partition: PartitionName
  let key: DocumentKey
  let wanted: Wanted

  var place: Place { Place(partition: partition, key: key) }
}

/// What the edits of the running transaction asked for, in their order. An edit that is judged twice stands here twice.
final class IntentBook: Sendable {
  private let intents = Mutex<[Intent]>([])

  func put(_ intent: Intent) { intents.withLock { $0.append(intent) } }

  func take() -> [Intent] {
    intents.withLock { intents in
      defer { intents = [] }
      return intents
    }
  }
}

/// An edit that leaves word of what it asked for.
struct WatchedEdit: DocumentEdit {
  let edit: any DocumentEdit
  let job: WriteJob
  let book: IntentBook

  var collection: Text { edit.collection }
  var id: Value { edit.id }

  func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    let outcome = try edit.outcome(on: present)
    let wanted: Intent.Wanted =
      switch outcome {
      case .body(let body, let hints): .body(body, hints: hints)
      case .deleted: .gone
      case .decided(let body, let conflicts): .decided(body, closing: conflicts)
      }
    let key = DocumentKey(collection: collection, id: id)
    book.put(Intent(job: job.number, partition: job.partition, key: key, wanted: wanted))
    return outcome
  }
}

/// An edit from an earlier reading, which leaves word of nothing but its place.
struct MergedEdit: DocumentEdit {
  let edit: any DocumentEdit
  let partition: PartitionName
  let book: IntentBook

  var collection: Text { edit.collection }
  var id: Value { edit.id }

  func outcome(on present: PresentDocument) throws -> DocumentOutcome {
    let key = DocumentKey(collection: collection, id: id)
    book.put(Intent(job: 0, partition: partition, key: key, wanted: .merged))
    return try edit.outcome(on: present)
  }
}

/// What a transaction was to make of a document, and the document right behind its commit.
struct KeptIntent {
  let intent: Intent
  /// Nil where there is none, or it does not read.
  let state: DocumentState?
}
