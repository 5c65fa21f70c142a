import Replication
import Testing

@testable import Identity

@Suite struct RedactionTests {
  /// Every way in which a value may get into a log.
  private func appearances(_ value: Any) -> [String] {
    var dumped = ""
    dump(value, to: &dumped)
    return [
      "\(value)", String(describing: value), String(reflecting: value), dumped, "\([value])", "\(["key": value])",
      "\(Optional.some(value) as Any)",
    ]
  }

  @Test("no way of printing a value shows a secret in it")
  func printing() throws {
    let seed = (0..<32).map { UInt8(truncatingIfNeeded: 0xa1 + $0 * 7) }
    let key = try #require(SigningKey(seed: seed))
    let secret = try #require(InvitationSecret(seed))
    let values: [Any] = [
      key, key.seed, SecretBytes(seed), secret, try TLSIdentity(key), Holder(key: key, secret: secret),
    ]
    // Hexadecimal, as an array of numbers, and base32: of any four bytes in a row.
    let needles = seed.indices.dropLast(3).flatMap { start -> [String] in
      let part = Array(seed[start..<(start + 4)])
      return [Hex.encode(part), part.map(String.init).joined(separator: ", "), String(Base32.encode(part).prefix(6))]
    }
    for value in values {
      for text in appearances(value) {
        for needle in needles where text.lowercased().contains(needle.lowercased()) {
          Issue.record("\(type(of: value)) shows its secret in: \(text)")
        }
      }
    }
  }

  private struct Holder {
    let key: SigningKey
    let secret: InvitationSecret
  }

  @Test("a signing key names itself by its device id")
  func name() throws {
    let key = try Fixture.key(1)
    #expect("\(key)".contains(DeviceID(key.publicKey).shortText))
  }
}
