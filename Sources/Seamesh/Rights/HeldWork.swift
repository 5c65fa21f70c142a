import Engine
import Identity
import Replication

/// What devices wrote that were ended, or whose right was lowered, and is held for that.
struct HeldWork: Sendable {
  /// Changes by the device, in words that tell it from others; only whom this device may see: itself, and as an admin everybody.
  var changes: [String: Int64] = [:]
  /// What ended this very device, in words.
  var ownEnd: String?
  var own: Int64 = 0
  /// Ended devices that declared replica ids of which nobody had heard, and of whose work nothing is here: they may have some.
  /// As an admin alone.
  var unheard: [String] = []
  /// Of whom this device may see, too.
  var lowered: [LoweredWork] = []
}

extension NodeEngine {
  func heldWork() -> HeldWork {
    let (authority, own) = (state.mesh.authority, state.identity.device)
    let words = RightsWords(authority)
    let isAdmin = authority.isAdmin(own)
    var work = HeldWork()
    let memberships = authority.members(of: own)
    if !memberships.isEmpty, authority.standingMemberships(of: own).isEmpty {
      let ends = memberships.flatMap { authority.ends(of: .membership($0.id)) }
      work.ownEnd = ends.map { words.words(of: $0) }.joined(separator: " and ")
    }
    var counts: [PublicKey: Int64] = [:]
    var lowered = LoweredRights(authority) { isAdmin || $0 == own }
    for partition in state.mesh.partitions.values {
      let changes = partition.log.held
      lowered.note(changes, in: partition.name)
      for held in changes {
        guard let author = authority.author(of: held.dot.replica), isAdmin || author == own,
          authority.isEnded(author, under: held.dot.replica)
        else { continue }
        counts[author, default: 0] += 1
      }
    }
    // A device that was reset and joined again has the label of the one that was ended.
    let labels = Dictionary(grouping: authority.allMembers, by: { words.name(of: $0.device) }).mapValues(\.count)
    func name(_ device: PublicKey) -> String {
      let label = words.name(of: device)
      return labels[label] ?? 0 > 1 ? "\(label) (\(DeviceID(device).shortText))" : label
    }
    work.changes = Dictionary(counts.map { (name($0), $1) }) { $0 + $1 }
    work.own = counts[own] ?? 0
    if isAdmin { work.unheard = authority.unheardEndedDevices.filter { counts[$0] == nil }.map(name).sorted() }
    work.lowered = lowered.work
    return work
  }
}
