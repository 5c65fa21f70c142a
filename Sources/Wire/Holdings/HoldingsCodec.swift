import Replication

/// The form of holdings as they are stored and signed (`Docs/PROTOCOL.md`, "Holdings").
package enum HoldingsCodec {
  package static let version: UInt64 = 1
  /// Fields before the signature.
  static let fieldCount = 8

  /// What the device signs: the tag, then the array of everything but the signature.
  package static func signedBytes(_ holdings: Holdings) -> [UInt8] {
    var writer = CBORWriter(reserving: 256 + 48 * holdings.vector.count)
    writer.encoded(DomainTag.holdings.bytes)
    writer.arrayHeader(fieldCount)
    writer.fields(of: holdings)
    return writer.bytes
  }

  package static func encode(_ signed: SignedHoldings) -> [UInt8] {
    var writer = CBORWriter(reserving: 320 + 48 * signed.holdings.vector.count)
    writer.arrayHeader(fieldCount + 1)
    writer.fields(of: signed.holdings)
    writer.signature(signed.signature)
    return writer.bytes
  }

  /// Exactly one record. Its signature is not looked at.
  package static func decode(_ bytes: ArraySlice<UInt8>) throws(CBORError) -> SignedHoldings {
    var reader = CBORReader(bytes)
    let signed = try reader.readHoldings()
    try reader.finish()
    return signed
  }
}

extension SignedHoldings {
  package func isSigned(_ verify: (Signature, [UInt8], PublicKey) -> Bool) -> Bool {
    verify(signature, HoldingsCodec.signedBytes(holdings), holdings.device)
  }
}

extension CBORWriter {
  mutating func ownLast(_ ownLast: Holdings.OwnLast?) {
    guard let own = ownLast else { return null() }
    arrayHeader(2)
    replica(own.replica)
    unsigned(own.sequence)
  }

  fileprivate mutating func fields(of holdings: Holdings) {
    unsigned(HoldingsCodec.version)
    digest(holdings.fleet.digest)
    publicKey(holdings.device)
    text(holdings.partition.text)
    unsigned(holdings.number)
    vector(holdings.vector)
    unsigned(holdings.kind.rawValue)
    ownLast(holdings.ownLast)
  }
}

extension CBORReader {
  fileprivate mutating func readHoldings() throws(CBORError) -> SignedHoldings {
    try readArrayHeader(count: HoldingsCodec.fieldCount + 1)
    let start = offset
    guard try readUnsigned() == HoldingsCodec.version else { throw CBORError(.unsupported, at: start) }
    let holdings = Holdings(
      fleet: FleetID(try readDigest()), device: try readPublicKey(), partition: try partitionName(),
      number: try readOrdinal(), vector: try readVector(), kind: try readHoldingsKind(), ownLast: try readOwnLast())
    return SignedHoldings(holdings, signature: try readSignature())
  }

  private mutating func readHoldingsKind() throws(CBORError) -> Holdings.Kind {
    let start = offset
    guard let kind = Holdings.Kind(rawValue: try readUnsigned()) else { throw CBORError(.outOfRange, at: start) }
    return kind
  }

  mutating func readOwnLast() throws(CBORError) -> Holdings.OwnLast? {
    guard try nextMajor() == .array else {
      try readNull()
      return nil
    }
    try readArrayHeader(count: 2)
    return Holdings.OwnLast(replica: try readReplica(), sequence: try readOrdinal())
  }
}
