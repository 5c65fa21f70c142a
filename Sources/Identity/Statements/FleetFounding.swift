import Replication
import Wire

/// A new fleet with this device as its first admin.
///
/// The rules for `agency=`, `user=`, `all-users=` and `conversation=` hold in every fleet. Beside them, in an open one a
/// grant by the root lets every member write; in a closed one admins manage, and nobody else may do what no rule gives
/// him until somebody grants it. Neither reaches the partitions of a reserved key.
package struct FleetFounding: Sendable {
  package let fleet: FleetID
  /// Needed for admins, rules and grants alone: to be kept apart from the device.
  package let rootKey: SigningKey
  package let deviceKey: SigningKey
  /// Id of this device's membership statement: its replicas are declared under it.
  package let membership: Digest
  /// In the order of the root's sequence: genesis, membership of this device, rules, grant.
  package let statements: [Statement]

  package static let adminRole: Text = "admin"
  package static let ruleKeys: [Text] = ["agency", "user", "all-users", "conversation"]

  package enum Openness: Sendable { case open, closed }

  /// - Throws: where a name is longer than a statement holds, or the profile has anything but text in it.
  package static func make(
    fleetName: Text, user: Text, label: Text, profile: ValueMap = ValueMap(),
    _ openness: Openness = .open, random: RandomSource = SecureRandom.bytes
  ) throws(StatementError) -> FleetFounding {
    let root = SigningKey(random: random)
    let device = SigningKey(random: random)
    let fleet = FleetID(root: root.publicKey)
    let membership = Statement.Membership(
      device: device.publicKey, user: user, label: label, role: adminRole, profile: profile)
    let genesis = Statement.Genesis(fleetName: fleetName)

    let signer = StatementSigner(fleet: fleet, key: root)
    var statements = [try signer.sign(.genesis(genesis))]
    let signedMembership = try signer.sign(.membership(membership), after: statements.last)
    statements.append(signedMembership)
    for body in rights(openness) { statements.append(try signer.sign(body, after: statements.last)) }
    return FleetFounding(
      fleet: fleet, rootKey: root, deviceKey: device, membership: signedMembership.id, statements: statements)
  }

  private static func rights(_ openness: Openness) -> [Statement.Body] {
    let grant =
      switch openness {
      case .open: Statement.Grant(subject: .everyone, level: .write, pattern: "*")
      case .closed: Statement.Grant(subject: .role(adminRole), level: .manage, pattern: "*")
      }
    return ruleKeys.map { .rule(Statement.Rule(key: $0)) } + [.grant(grant)]
  }
}
