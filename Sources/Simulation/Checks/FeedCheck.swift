import Engine
import Replication

/// What commits are told of to whoever follows them.
struct FeedCheck: Check {
  let known: Knowledge

  /// Each record goes on from the one before, and after the last of a turn there is nothing that nobody was told of.
  func check(_ records: [CommitRecord], of process: NodeProcess) {
    for moved in records.flatMap(\.partitions) {
      let told = process.told[moved.partition] ?? VersionVector()
      if moved.before != told {
        world.violate(
          "feed", "node \(process.node.slot) tells of \(Oracle.text(moved.before)) after \(Oracle.text(told))")
      }
      process.told[moved.partition] = moved.accepted
    }
    for (partition, state) in process.mesh.partitions {
      let (told, now) = (process.told[partition] ?? VersionVector(), state.log.accepted)
      guard told != now else { continue }
      return world.violate(
        "feed", "node \(process.node.slot) accepts \(Oracle.text(now)) and told of \(Oracle.text(told))")
    }
  }
}
