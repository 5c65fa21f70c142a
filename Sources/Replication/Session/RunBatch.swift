/// Runs of one partition in the order in which the sender's log has them.
package struct RunBatch: Sendable, Equatable {
  package let name: PartitionName
  /// The number that the receiver gave with its pull; 0 for a stream that both opened by equal summaries.
  package let stream: UInt64
  package let entries: [Entry]
  /// Runs off the sender's chosen branch, sent to show a fork (rule C5); they stand outside the stream.
  package let isForkEvidence: Bool

  /// A batch is closed once it holds this many bytes.
  package static let byteTarget = 64 * 1024
  package static let entryLimit = 4_096
  /// Entries of all contexts of one message, each put together.
  package static let contextEntryLimit = 262_144
  /// A batch is closed once it holds so many: with the longest context beside it stays below the limit.
  static let contextEntryTarget = 131_072
  /// What a context's entry may take on the wire.
  static let contextEntryBytes = 48

  package init(name: PartitionName, stream: UInt64, entries: [Entry], isForkEvidence: Bool = false) {
    (self.name, self.stream, self.entries, self.isForkEvidence) = (name, stream, entries, isForkEvidence)
  }

  package struct Entry: Sendable, Equatable {
    package let context: ContextForm
    /// The run as the log has it.
    package let encoded: ArraySlice<UInt8>

    package init(context: ContextForm, encoded: ArraySlice<UInt8>) { (self.context, self.encoded) = (context, encoded) }
  }
}

/// How a context is written on the wire (rule C3). The choice is the sender's, per stream; hashes cover the resolved
/// vector, so nothing but length depends on it.
package enum ContextForm: Sendable, Equatable {
  case full(VersionVector)
  /// What differs from the context of the run before on this stream. Sequence 0 takes an entry away.
  case increments([Increment])

  package struct Increment: Sendable, Equatable {
    package let replica: ReplicaID
    package let position: ChainPosition
    package init(replica: ReplicaID, position: ChainPosition) { (self.replica, self.position) = (replica, position) }
  }

  /// Of those that travel.
  var entryCount: Int {
    switch self {
    case .full(let vector): vector.count
    case .increments(let increments): increments.count
    }
  }

  /// The shorter of both forms.
  package static func shorter(_ context: VersionVector, base: VersionVector?) -> ContextForm {
    guard let base else { return .full(context) }
    let differences = context.differing(from: base)
    guard differences.count < context.count else { return .full(context) }
    return .increments(
      differences.map {
        Increment(replica: $0.replica, position: $0.position ?? ChainPosition(sequence: 0, tip: .zero))
      })
  }

  package func resolved(on base: VersionVector?) -> VersionVector {
    switch self {
    case .full(let vector): return vector
    case .increments(let increments):
      var vector = base ?? VersionVector()
      for increment in increments {
        vector[increment.replica] = increment.position.sequence == 0 ? nil : increment.position
      }
      return vector
    }
  }
}
