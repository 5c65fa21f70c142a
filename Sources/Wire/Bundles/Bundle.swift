import Replication

/// Statements and runs as they hold outside of any session: on a stick, in a file, by mail.
///
/// It needs no signature, since each statement and each run in it bears one. Whoever takes it in judges everything as if a
/// peer had sent it: statements first, then each partition's runs as one stream.
package struct Bundle: Equatable, Sendable {
  /// The runs of one partition, each behind those that its context names as far as they are in the bundle.
  package struct Partition: Equatable, Sendable {
    package let name: PartitionName
    package let runs: [Entry]
    package init(name: PartitionName, runs: [Entry]) { (self.name, self.runs) = (name, runs) }
  }

  package struct Entry: Equatable, Sendable {
    /// Whole, or as increments to that of the run before in this partition.
    package let context: ContextForm
    /// As the log has it.
    package let encoded: ArraySlice<UInt8>
    /// Of the run's only change, where it travels apart.
    package let payload: ArraySlice<UInt8>?

    package init(context: ContextForm, encoded: ArraySlice<UInt8>, payload: ArraySlice<UInt8>? = nil) {
      (self.context, self.encoded, self.payload) = (context, encoded, payload)
    }
  }

  package let fleet: FleetID
  /// As they were signed.
  package let statements: [ArraySlice<UInt8>]
  /// Ascending by name.
  package let partitions: [Partition]

  package init(fleet: FleetID, statements: [ArraySlice<UInt8>], partitions: [Partition]) {
    (self.fleet, self.statements, self.partitions) = (fleet, statements, partitions)
  }
}
