import Replication

extension DeviceID {
  /// `H(domain, public key)`.
  package init(_ key: PublicKey) { self = .derived(from: key, SHA256.hash) }

  /// 64 hexadecimal digits.
  package var text: String { digest.text }

  /// The first 8 hexadecimal digits: for people, never to decide anything.
  package var shortText: String { String(text.prefix(DeviceID.shortTextLength)) }

  package static let shortTextLength = 8

  /// Nil unless the text is 64 hexadecimal digits.
  package init?(text: some StringProtocol) {
    guard let digest = Digest(text: text) else { return nil }
    self.init(digest)
  }
}

extension FleetID {
  /// `H(domain, root public key)`.
  package init(root: PublicKey) { self.init(Digest.of(DomainTag.fleet.bytes + root.bytes, SHA256.hash)) }

  /// 64 hexadecimal digits.
  package var text: String { digest.text }

  /// Nil unless the text is 64 hexadecimal digits.
  package init?(text: some StringProtocol) {
    guard let digest = Digest(text: text) else { return nil }
    self.init(digest)
  }
}

extension Digest {
  /// 64 hexadecimal digits.
  package var text: String { Hex.encode(bytes) }

  /// Nil unless the text is 64 hexadecimal digits.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == Digest.byteCount * 2, let bytes = Hex.decode(text) else { return nil }
    self.init(bytes)
  }
}

extension SixteenBytes {
  /// 32 hexadecimal digits.
  package var text: String { Hex.encode(bytes) }

  /// Nil unless the text is 32 hexadecimal digits.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == 32, let bytes = Hex.decode(text) else { return nil }
    self.init(bytes)
  }
}
