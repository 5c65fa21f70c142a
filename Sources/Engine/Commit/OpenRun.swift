import Replication
import Wire

/// An own run that grows within one transaction, with the documents that it makes. These have no row before the run is
/// closed, and lie in it alone then, as those of a run that came from elsewhere do (decision 50).
struct OpenRun {
  struct Place {
    let chain: ChainIdentity
    let dot: Dot
    let context: VersionVector
  }

  var builder: RunBuilder
  private(set) var made: [MadeDocuments] = []
  private var keys: Set<DocumentKey> = []

  init(_ builder: RunBuilder) { self.builder = builder }

  /// Of the next change.
  var place: Place { Place(chain: builder.chain, dot: builder.nextDot, context: builder.context) }

  func makes(_ documents: [DocumentKey]) -> Bool { !keys.isEmpty && documents.contains(where: keys.contains) }

  /// Takes note of what the change that was appended last makes. False where its documents cannot lie in the run: its payload
  /// travels apart, or forks and re-issues have a say in what it has seen.
  mutating func make(_ change: ComposedChange, _ documents: [DocumentKey]) -> Bool {
    guard change.payload.count <= Run.inlinePayloadByteLimit, change.context.sight == .plain else { return false }
    made.append(MadeDocuments(sequence: change.context.dot.sequence, views: change.documents))
    keys.formUnion(documents)
    return true
  }
}

/// What one change of an own run makes.
struct MadeDocuments {
  fileprivate let sequence: UInt64
  /// In the change's payload.
  fileprivate let views: [DocumentWriteView]

  /// In the encoded run, in which payloads begin at `payloadStarts`.
  func placed(in run: Run, _ payloadStarts: [Int?]) -> [PlacedWrite] {
    let index = Int(sequence - run.record.first)
    guard let start = payloadStarts[index] else { preconditionFailure("a payload that makes documents travels apart") }
    let header = run.changes[index].header
    return views.map { PlacedWrite(sequence: sequence, timestamp: header.timestamp, view: $0.moved(to: start)) }
  }
}
