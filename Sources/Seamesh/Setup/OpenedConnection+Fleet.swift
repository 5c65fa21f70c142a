import Identity
import Replication
import Transport

extension OpenedConnection {
  /// What shows on this connection that a side knows the fleet.
  func fleetProof(_ fleet: FleetID) -> FleetProof {
    FleetProof(fleet, exporter: exporter, hash: SHA256.hash, authenticationCode: HMAC.sha256)
  }

  /// Whoever listens at the other end knows the fleet.
  func listenerKnows(_ fleet: FleetID, by hello: Hello) -> Bool {
    fleetProof(fleet).proof(ofDialer: false).equalsInConstantTime(hello.fleetProof)
  }
}
