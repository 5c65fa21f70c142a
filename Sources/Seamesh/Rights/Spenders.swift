import Engine
import Identity
import Replication

/// A device that takes much of what every node has to keep of it.
struct Spender: Sendable {
  let name: String
  let device: String
  let statements: Int
  let statementBytes: Int
  let replicas: Int
  let take: DeviceTake
}

extension NodeEngine {
  /// Devices that have said, or made this node keep, half of what they may.
  func spenders() -> [Spender] {
    let authority = state.mesh.authority
    let words = RightsWords(authority)
    let takes = state.mesh.takes
    let allowances = Dictionary(authority.allowances.map { ($0.device, $0) }) { first, _ in first }
    let devices = Set(allowances.keys).union(takes.keys).filter {
      allowances[$0]?.isNearlySpent == true || takes[$0]?.isNearlySpent == true && !authority.isAdmin($0)
    }
    return devices.sorted().map { device in
      let allowance = allowances[device]
      return Spender(
        name: words.name(of: device), device: DeviceID(device).shortText,
        statements: allowance?.statements ?? 0, statementBytes: allowance?.statementBytes ?? 0,
        replicas: allowance?.replicas ?? 0, take: takes[device] ?? .nothing)
    }
  }
}
