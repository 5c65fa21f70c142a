import Replication
import Storage

/// How much is read, held and waited for on behalf of one question. Tests set it small.
package struct ReadLimits: Sendable {
  /// Documents of one page, and bytes of their stored states. A page is read in one go, from one state of the store.
  package var pageDocuments = 500
  package var pageBytes = 4 * 1024 * 1024
  /// For one page, however long the whole pass takes.
  package var pageMilliseconds = StoreReader.timeLimitMilliseconds
  /// A result is read from one snapshot, where its partition is written to meanwhile, if it takes no longer.
  package var oneStateMilliseconds: Int64 = 2_000

  /// Documents of a result for which no limit was asked, and of a live result: more is not for a screen, and `export`
  /// gives all of them one by one.
  package var resultDocuments = 10_000
  /// Memory of a result, whatever was asked, and of a live one, by ``StoredDocument/heapBytes``: a node with 64 MiB must
  /// outlive it (K5).
  package var resultBytes = 8 * 1024 * 1024
  /// A result above it takes a turn. Everybody who waits for one may hold so much.
  package var smallResultBytes = MemoryBudget.ofProcess.smallResultBytes
  /// Results above it that are made or written out at once, and how long the next waits for its turn.
  package var largeResults = 1
  package var turnMilliseconds: UInt64 = 5_000
  /// Memory of all live results together.
  package var allLiveBytes = 16 * 1024 * 1024

  /// Readers of the store that pages of passes leave to those who ask for one thing, however many pass at once.
  package var keptReaders = 2

  /// Documents that do not read, of one result.
  package var damagedDocuments = 1_000

  /// Conflicts are looked for document by document: so many of them for one answer, and so many bytes of the states of those
  /// that have some.
  package var conflictDocuments = 20_000
  package var conflictBytes = 4 * 1024 * 1024

  /// A live result that slept through more commits than the feed remembers looks up what was written meanwhile one by one,
  /// where the log names no more documents than these, one as often as it was written. Beyond it reads its collection anew:
  /// a pass in the order of keys costs less for each.
  package var missedDocuments = 10_000
  /// Bytes of the log that it decodes for it, and runs that it steps over, those of other partitions among them.
  package var missedBytes = 16 * 1024 * 1024
  package var missedRuns: Int64 = 65_536

  /// A state digest reads from one state of the store for about so long before it lets go of it.
  package var digestSliceMilliseconds: Int64 = 1_000
  /// Documents that are read anew for one that has changed, at least; up to twice as many.
  package var digestStretchDocuments = 128
  /// A listing waits so long for all state digests together that are not known; the rest it tells "not computed".
  package var digestWaitMilliseconds = 30

  /// Who asks the engine waits no longer for its answer: far above what the largest import takes on a slow disk.
  package var replyMilliseconds: UInt64 = 60_000

  /// Who asks how safe something is waits so long for what peers say, looking again after each pause.
  static let receiptMilliseconds: UInt64 = 1_500
  static let receiptPauseMicroseconds: UInt32 = 20_000
  /// Between two questions to peers of who follows how safe something is, as long as one in reach lacks some of it. A peer that
  /// was asked before a change came to it says nothing of its own accord once it has.
  static let receiptAskMilliseconds: UInt64 = 2_000

  package init() {}

  /// So many are no matter of single documents any more.
  func check(damaged: Int) throws(NodeError) {
    guard damaged > damagedDocuments else { return }
    throw NodeError(
      .damaged, "more than \(damagedDocuments) of these documents do not read on this device: see seamesh doctor")
  }

  /// Refuses what is beyond the bounds of a result.
  func check(documents: Int, bytes: Int) throws(NodeError) {
    guard documents <= resultDocuments else {
      throw NodeError(
        .tooLarge,
        "the result has more than \(resultDocuments) documents: ask for less with limit and skip or a narrower filter, or "
          + "export the collection", limit: .init(resultDocuments, "documents"))
    }
    guard bytes <= resultBytes else {
      throw NodeError(
        .tooLarge,
        "the result takes more than \(resultBytes) bytes of memory: ask for less with a projection, limit and skip or a "
          + "narrower filter, or export the collection", limit: .init(resultBytes, "bytes"))
    }
  }
}

extension StoredDocument {
  /// About the memory that it takes.
  var heapBytes: Int { Value.map(body).heapBytes + id.heapBytes + etag.utf8.count + 2 * Value.boxBytes }
}

extension Value {
  /// Of an allocation with its header: a value's box, an array, a long string.
  static let boxBytes = 48

  /// About the memory that it takes.
  var heapBytes: Int {
    switch self {
    case .null, .bool, .int, .double, .date, .objectID, .uuid: Value.boxBytes
    case .string(let text): Value.boxBytes + text.heapBytes
    case .bytes(let bytes): 2 * Value.boxBytes + bytes.count
    case .array(let items): items.reduce(2 * Value.boxBytes) { $0 + $1.heapBytes + MemoryLayout<Value>.stride }
    case .map(let map):
      map.entries.reduce(2 * Value.boxBytes) {
        $0 + $1.key.heapBytes + $1.value.heapBytes + MemoryLayout<ValueMap.Entry>.stride
      }
    case .blob(let blob): 3 * Value.boxBytes + blob.type.heapBytes
    }
  }
}

extension Text {
  /// Short strings lie within the value itself.
  fileprivate var heapBytes: Int { utf8.count > 15 ? Value.boxBytes + utf8.count : 0 }
}
