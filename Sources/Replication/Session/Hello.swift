/// First message of either side. Signed over the TLS exporter value, so that it belongs to this connection and no other.
///
/// To who does not know the fleet it tells nothing but a clock and a port: the fleet is proved, not named, and digests are
/// told by their marks (``FleetProof``).
package struct Hello: Sendable, Equatable {
  /// Highest protocol version the sender speaks.
  package var version: UInt64 = Hello.protocolVersion
  /// Bit set of what the sender takes (``KnownFormats/Feature``); unknown bits are ignored.
  package var features: UInt64 = 0
  package var fleetProof: Digest
  /// Random per process: tells a node that dialled itself from a clone of its directory.
  package var instance: UUIDValue
  package var wallMilliseconds: Int64
  package var listenPort: UInt16
  package var authority: DigestMark
  package var interest: DigestMark
  package var signature: Signature
  package var extensions = MessageExtensions()

  package static let protocolVersion: UInt64 = 1

  package init(
    fleetProof: Digest, instance: UUIDValue, wallMilliseconds: Int64, listenPort: UInt16, authority: DigestMark,
    interest: DigestMark, signature: Signature = Signature(first: .zero, second: .zero)
  ) {
    (self.fleetProof, self.instance, self.wallMilliseconds) = (fleetProof, instance, wallMilliseconds)
    (self.listenPort, self.authority, self.interest) = (listenPort, authority, interest)
    self.signature = signature
  }

  /// What the device key signs: a fixed layout over the connection's exporter value, the key and every field.
  package func signedBytes(device: PublicKey, exporter: Digest, isDialer: Bool) -> [UInt8] {
    var out = DomainTag.hello.bytes
    exporter.append(to: &out)
    out.append(isDialer ? 1 : 0)
    appendBigEndian(version, to: &out)
    appendBigEndian(features, to: &out)
    fleetProof.append(to: &out)
    device.raw.append(to: &out)
    instance.append(to: &out)
    appendBigEndian(UInt64(bitPattern: wallMilliseconds), to: &out)
    appendBigEndian(listenPort, to: &out)
    authority.append(to: &out)
    interest.append(to: &out)
    extensions.append(to: &out)
    return out
  }
}
