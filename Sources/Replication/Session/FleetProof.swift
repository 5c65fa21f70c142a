/// What shows on one connection that a side knows the fleet, and names digests to the other side alone.
///
/// The key follows from the fleet's id, as that of announcements on the network does (`Docs/PROTOCOL.md`, "Discovery"). A
/// stranger who answers a dial, or dials, learns neither the fleet nor whether two nodes hold the same.
package struct FleetProof: Sendable {
  /// What a mark is of; its number is part of it.
  package enum Subject: UInt8, Sendable {
    case authority = 1
    case interest = 2
  }

  private let key: [UInt8]
  private let exporter: Digest
  private let authenticationCode: @Sendable (_ key: [UInt8], _ message: [UInt8]) -> Digest

  package init(
    _ fleet: FleetID, exporter: Digest, hash: HashFunction,
    authenticationCode: @escaping @Sendable (_ key: [UInt8], _ message: [UInt8]) -> Digest
  ) {
    key = FleetProof.discoveryKey(of: fleet, hash).bytes
    (self.exporter, self.authenticationCode) = (exporter, authenticationCode)
  }

  package static func discoveryKey(of fleet: FleetID, _ hash: HashFunction) -> Digest {
    Digest.of(DomainTag.discovery.bytes + fleet.digest.bytes, hash)
  }

  /// Of the side that dialled, or of the one that listened: neither can be reflected.
  package func proof(ofDialer isDialer: Bool) -> Digest {
    authenticationCode(key, beginning(.proof, isDialer))
  }

  package func mark(_ digest: Digest, _ subject: Subject, ofDialer isDialer: Bool) -> DigestMark {
    var message = beginning(.mark, isDialer)
    message.append(subject.rawValue)
    digest.append(to: &message)
    let words = authenticationCode(key, message).words
    return DigestMark(high: words.0, low: words.1)
  }

  private func beginning(_ tag: DomainTag, _ isDialer: Bool) -> [UInt8] {
    var message = tag.bytes
    exporter.append(to: &message)
    message.append(isDialer ? 1 : 0)
    return message
  }
}

/// Stands for a digest on one connection, in one direction.
package struct DigestMark: SixteenBytes {
  package let high: UInt64
  package let low: UInt64
  package init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }
}
