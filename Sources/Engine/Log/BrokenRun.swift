import Replication
import Wire

/// A run off the wire that is none, and whose it says it is.
package struct BrokenRun: RuleBreach {
  package let rule: String
  /// Without a change where not even that can be read.
  private let place: BrokenRule.Place

  init(_ encoded: ArraySlice<UInt8>, in partition: PartitionName, _ reason: any RuleBreach) {
    rule = reason.rule
    guard let (replica, first) = try? RunCodec.beginning(of: encoded) else {
      place = BrokenRule.Place(partition: partition)
      return
    }
    let sequence = (reason as? RunError)?.change ?? first
    place = BrokenRule.Place(partition: partition, replica: replica, sequence: sequence)
  }

  /// What an error of ``FrameDecoder`` or ``RunCompletion`` is about, where that is a run.
  package static func place(of error: any Error) -> BrokenRule.Place? { (error as? BrokenRun)?.place }

  /// And which rule it says was broken.
  package static func rule(of error: any Error) -> String { (error as? any RuleBreach)?.rule ?? words(of: error) }
}
