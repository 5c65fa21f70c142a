import Replication
import Wire

/// Makes statements in the name of one key: the fleet root, an admin, the admission key, or a device.
package struct StatementSigner: Sendable {
  package let fleet: FleetID
  private let key: SigningKey

  package init(fleet: FleetID, key: SigningKey) { (self.fleet, self.key) = (fleet, key) }

  package var issuer: PublicKey { key.publicKey }

  /// - Parameter sequence: one more than the issuer's last statement in this scope. The admission key, which many
  ///   devices hold, may use a number again; the id then tells the statements apart.
  /// - Throws: where the body breaks a limit of the encoding.
  package func sign(
    _ body: Statement.Body, sequence: UInt64, scope: Text = ""
  ) throws(StatementError) -> Statement {
    let unsigned = try StatementCodec.unsigned(
      fleet: fleet, issuer: issuer, sequence: sequence, scope: scope, body: body)
    return try StatementCodec.assemble(unsigned: unsigned, signature: key.sign(unsigned), SHA256.hash)
  }

  /// Declares an incarnation of this device's store (rule C2). Signed by the device itself.
  package func declareReplica(
    nonce: UUIDValue, membership: Digest, sequence: UInt64
  ) throws(StatementError) -> Statement {
    let replica = ReplicaID.derived(device: DeviceID(issuer), nonce: nonce, SHA256.hash)
    return try sign(
      .replica(Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership)),
      sequence: sequence)
  }
}
