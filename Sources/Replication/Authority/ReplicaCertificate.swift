extension DeviceID {
  /// `H(domain, public key)`.
  package static func derived(from key: PublicKey, _ hash: HashFunction) -> DeviceID {
    DeviceID(Digest.of(DomainTag.device.bytes + key.bytes, hash))
  }
}

extension ReplicaID {
  /// First 16 bytes of `H(domain, device id, nonce)`: an id that nobody but that device can declare (rule C2).
  package static func derived(device: DeviceID, nonce: UUIDValue, _ hash: HashFunction) -> ReplicaID {
    var input = DomainTag.replica.bytes
    device.digest.append(to: &input)
    nonce.append(to: &input)
    let digest = Digest.of(input, hash)
    return ReplicaID(high: digest.words.0, low: digest.words.1)
  }
}

/// Does the declaration's id belong to the key that signed it? Called once per declaration.
package typealias ReplicaCertificate = @Sendable (Statement.ReplicaDeclaration, PublicKey) -> Bool
