import Replication

/// Which end of a connection signs: without it a signature could be thrown back at its maker.
package enum ConnectionSide: UInt8, Sendable, CaseIterable {
  case dialling = 0
  case accepting = 1

  package var other: ConnectionSide { self == .dialling ? .accepting : .dialling }
}

/// Signatures over the TLS exporter value (RFC 8446 §7.5): each belongs to one connection and is worthless on any other.
package enum ChannelSignature {
  /// The signature of a Hello by its device key, over `domain · exporter 32 · side 1 · encoded fields`.
  package static func hello(
    by key: SigningKey, exporter: Digest, side: ConnectionSide, fields: [UInt8]
  ) -> Signature {
    key.sign(message(.hello, exporter, side, fields))
  }

  /// `side` is that of the Hello's sender.
  package static func isValidHello(
    _ signature: Signature, by device: PublicKey, exporter: Digest, side: ConnectionSide, fields: [UInt8]
  ) -> Bool {
    Ed25519.verify(signature, message(.hello, exporter, side, fields), device)
  }

  fileprivate static func message(
    _ tag: DomainTag, _ exporter: Digest, _ side: ConnectionSide, _ fields: [UInt8]
  ) -> [UInt8] {
    tag.bytes + exporter.bytes + [side.rawValue] + fields
  }
}

/// Shows that a device that wants to join knows the admission secret, without showing the secret.
package enum JoinProof {
  /// Made with the admission key over `domain · exporter 32 · side 1 · device key 32 · encoded fields of the request`.
  package static func make(
    by admission: SigningKey, exporter: Digest, side: ConnectionSide, device: PublicKey, fields: [UInt8]
  ) -> Signature {
    admission.sign(message(exporter, side, device, fields))
  }

  /// `side` is that of the device that joins.
  package static func verify(
    _ proof: Signature, admission: PublicKey, exporter: Digest, side: ConnectionSide, device: PublicKey,
    fields: [UInt8]
  ) -> Bool {
    Ed25519.verify(proof, message(exporter, side, device, fields), admission)
  }

  private static func message(
    _ exporter: Digest, _ side: ConnectionSide, _ device: PublicKey, _ fields: [UInt8]
  ) -> [UInt8] {
    ChannelSignature.message(.join, exporter, side, device.bytes + fields)
  }
}
