import Replication

/// The 8 bytes by which members of a fleet know each other's announcements; to anyone else they are noise that changes
/// with every instance name (fault X15).
///
/// The key follows from the fleet id alone, so a device that holds a join code recognises its fleet, and so does whoever
/// was ever told the id: the tag orders dialling and decides nothing.
package enum DiscoveryTag {
  package static let byteCount = 8

  package static func key(of fleet: FleetID) -> Digest {
    FleetProof.discoveryKey(of: fleet, SHA256.hash)
  }

  /// First 8 bytes of HMAC-SHA-256(key, instance name in UTF-8).
  package static func make(fleet: FleetID, instanceName: String) -> [UInt8] {
    Array(HMAC.sha256(key: key(of: fleet).bytes, Array(instanceName.utf8)).bytes.prefix(byteCount))
  }

  package static func matches(_ tag: [UInt8], fleet: FleetID, instanceName: String) -> Bool {
    isEqualInConstantTime(tag, make(fleet: fleet, instanceName: instanceName))
  }
}
