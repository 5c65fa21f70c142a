import Engine
import Identity
import Replication
import Storage

extension Node {
  /// Who may do what, and by which statements. With a partition: what each device may there; without: the grants.
  package func permissions(_ partition: PartitionName?, who: String?) throws(NodeError) -> PermissionReport {
    let desk = try permissionDesk()
    let subject: Statement.Subject? = if let who { try desk.names.subject(who).subject } else { nil }
    var report = PermissionReport()
    if let partition {
      report.members = desk.members(in: partition, subject)
    } else {
      report.rights = desk.grants(subject)
    }
    return report
  }

  package func rules() throws(NodeError) -> [RightStatus] { try permissionDesk().rules }

  /// Whether this device may do so much in the partition.
  package func may(_ level: AccessLevel, in partition: PartitionName) throws(NodeError) -> Bool {
    try engine.may(level, in: partition)
  }

  func permissionDesk() throws(NodeError) -> PermissionDesk {
    let authority = try engine.ask { $0.state.mesh.authority }
    return PermissionDesk(authority: authority, device: files.deviceKey.publicKey, arrivals: try statementArrivals())
  }

  /// When statements came here, in milliseconds since 1970.
  func statementArrivals() throws(NodeError) -> [Digest: Int64?] {
    try documents.reading { reader in
      Dictionary(try reader.statements().map { ($0.id, $0.arrived) }) { first, _ in first }
    }
  }
}

extension EngineLine {
  func may(_ level: AccessLevel, in partition: PartitionName) throws(NodeError) -> Bool {
    try ask { engine in
      engine.state.mesh.authority.level(of: engine.state.identity.device, in: partition) >= level
    }
  }
}

extension StatementNotes {
  /// Milliseconds since 1970 by the issuer's clock.
  var issuedAt: Int64? {
    guard let bytes = self[Key.issuedAt], bytes.count == 8 else { return nil }
    return Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
  }
}
