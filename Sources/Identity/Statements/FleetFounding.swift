import Replication
import Wire

/// A new fleet with this device as its first admin.
///
/// It is an open fleet: one grant by the root lets every member write every partition, beside the rules for `agency=`,
/// `user=`, `all-users=` and `conversation=`. A lower grant of the same register narrows it later.
package struct FleetFounding: Sendable {
  package let fleet: FleetID
  /// Needed for admins, rules and grants alone: to be kept apart from the device.
  package let rootKey: SigningKey
  package let admissionSecret: AdmissionSecret
  package let deviceKey: SigningKey
  /// Id of this device's membership statement: its replicas are declared under it.
  package let membership: Digest
  /// In the order of the root's sequence: genesis, membership of this device, rules, grant.
  package let statements: [Statement]

  package static let adminRole: Text = "admin"
  package static let ruleKeys: [Text] = ["agency", "user", "all-users", "conversation"]

  /// - Throws: where a name is longer than a statement holds, or the profile has anything but text in it.
  package static func make(
    fleetName: Text, user: Text, label: Text, profile: ValueMap = ValueMap(),
    random: RandomSource = SecureRandom.bytes
  ) throws(StatementError) -> FleetFounding {
    let root = SigningKey(random: random)
    let (secret, device) = (AdmissionSecret(random: random), SigningKey(random: random))
    let fleet = FleetID(root: root.publicKey)
    let membership = Statement.Membership(
      device: device.publicKey, user: user, label: label, role: adminRole, profile: profile)
    let genesis = Statement.Genesis(fleetName: fleetName, admissionKey: secret.key(in: fleet).publicKey)

    let signer = StatementSigner(fleet: fleet, key: root)
    var statements = [try signer.sign(.genesis(genesis), sequence: 1)]
    let signedMembership = try signer.sign(.membership(membership), sequence: 2)
    statements.append(signedMembership)
    for body in openRights { statements.append(try signer.sign(body, sequence: UInt64(statements.count) + 1)) }
    return FleetFounding(
      fleet: fleet, rootKey: root, admissionSecret: secret, deviceKey: device, membership: signedMembership.id,
      statements: statements)
  }

  private static var openRights: [Statement.Body] {
    ruleKeys.map { .rule(Statement.Rule(key: $0)) }
      + [.grant(Statement.Grant(subject: .everyone, level: .write, pattern: "*"))]
  }
}
