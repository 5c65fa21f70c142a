import Engine
import Identity
import Replication

extension Node {
  /// Documents are shown where this device may read: what it may only carry it passes on and shows nobody, and so it does
  /// with what it may read no longer ([decision 29](Docs/Decisions/0029-what-may-be-read-is-shown.md)).
  func checkMayShow(_ partition: PartitionName) throws(NodeError) {
    let (authority, device) = (authority.now, files.deviceKey.publicKey)
    let level = authority.level(of: device, in: partition)
    guard level < .read else { return }
    let standing = RightsWords(authority).standing(of: device, in: partition)
    throw NodeError(
      .notPermitted, "this device may not read \(partition.text.string): \(standing)",
      lackOfRight: LackOfRight(partition: partition.text.string, has: PartitionAccess(level), needs: .read))
  }
}
