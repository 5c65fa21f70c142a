import Replication
import Wire

/// Makes statements in the name of one key: the fleet root or a device.
package struct StatementSigner: Sendable {
  package let fleet: FleetID
  private let key: SigningKey

  package init(fleet: FleetID, key: SigningKey) { (self.fleet, self.key) = (fleet, key) }

  package var issuer: PublicKey { key.publicKey }

  /// - Parameter previous: the issuer's last statement in this scope.
  /// - Throws: where the body breaks a limit of the encoding.
  package func sign(
    _ body: Statement.Body, after previous: Statement? = nil, scope: Text = ""
  ) throws(StatementError) -> Statement {
    let link = previous.map { Statement.Link(sequence: $0.sequence, id: $0.id) }
    let unsigned = try StatementCodec.unsigned(fleet: fleet, issuer: issuer, after: link, scope: scope, body: body)
    return try StatementCodec.assemble(unsigned: unsigned, signature: key.sign(unsigned), SHA256.hash)
  }

  /// Declares an incarnation of this device's store (rule C2). Signed by the device itself.
  package func declareReplica(
    nonce: UUIDValue, membership: Digest, after previous: Statement? = nil
  ) throws(StatementError) -> Statement {
    let replica = ReplicaID.derived(device: DeviceID(issuer), nonce: nonce, SHA256.hash)
    return try sign(
      .replica(Statement.ReplicaDeclaration(replica: replica, nonce: nonce, membership: membership)),
      after: previous)
  }
}
