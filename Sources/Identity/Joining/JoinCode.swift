import Replication
import Wire

/// What a person carries to a new device so that it can join the fleet: base32 text, made for typing and for QR codes.
///
/// Whoever reads a code first can join with it, once: it holds the invitation's secret.
package struct JoinCode: Equatable, Redacted, Sendable {
  package var fleet: FleetID
  /// Whose invitation it is: that device alone admits.
  package var invitation: InvitationID
  package var secret: InvitationSecret
  /// Seconds since 1970 by the inviting device's clock, which alone judges; here for people.
  package var expires: UInt64
  /// `host:port` and `[address]:port` of the inviting device; hints beside discovery. At most ``addressLimit``.
  package var addresses: [Text]

  package static let addressLimit = 4
  /// Room for every limit here and the 255 bytes of each address; a typical code has 130 bytes.
  package static let byteLimit = 2 * 1024

  package init(
    fleet: FleetID, invitation: InvitationID, secret: InvitationSecret, expires: UInt64, addresses: [Text]
  ) {
    (self.fleet, self.invitation, self.secret) = (fleet, invitation, secret)
    (self.expires, self.addresses) = (expires, addresses)
  }

  package enum Invalid: Error, Equatable, CustomStringConvertible {
    case empty
    case tooLong(limit: Int)
    case character(Character, place: Int)
    /// Letters are missing, or one is wrong.
    case mistyped
    case version(UInt64)
    /// The check agrees, so it was made like this.
    case malformed
    /// Addresses without end, or more of them than a code holds.
    case unfit(String)

    package var description: String {
      switch self {
      case .empty: "The join code is empty."
      case .tooLong(let limit): "The join code is longer than the \(limit) characters that a code may have."
      case .character(let character, let place):
        "'\(character)' at place \(place) is in no join code; codes have the letters A–Z and the digits 2–7."
      case .mistyped: "The join code is incomplete or mistyped; compare it with the original and enter it again."
      case .version(let version):
        "The join code has version \(version), which this program does not know; install a newer one on this device."
      case .malformed: "The join code is not well formed; make a new one with: seamesh invite"
      case .unfit(let what): "No join code can hold \(what)."
      }
    }
  }
}

extension JoinCode {
  private static let version: UInt64 = 1
  private static let checkByteCount = 4
  /// Blanks and hyphens included.
  private static let textByteLimit = byteLimit * 2

  /// Upper-case base32 of deterministic CBOR `[1, fleet, inviting device's key, serial, secret, expires, [address…]]` and
  /// the first four bytes of its SHA-256, which find a mistyped letter.
  package func encode() throws(Invalid) -> String {
    try checkLimits()
    var writer = CBORWriter(reserving: 160)
    writer.arrayHeader(7)
    writer.unsigned(JoinCode.version)
    writer.digest(fleet.digest)
    writer.publicKey(invitation.inviter)
    writer.unsigned(invitation.serial)
    writer.byteString(secret.bytes)
    writer.unsigned(expires)
    writer.arrayHeader(addresses.count)
    for address in addresses { writer.address(address) }
    return Base32.encode(writer.bytes + JoinCode.check(of: writer.bytes))
  }

  /// Takes lower case, hyphens, blanks and line ends.
  package static func parse(_ text: String) throws(Invalid) -> JoinCode {
    guard text.utf8.count <= textByteLimit else { throw .tooLong(limit: textByteLimit) }
    let bytes = try decode(text)
    guard !bytes.isEmpty else { throw .empty }
    let content = Array(bytes.dropLast(checkByteCount))
    guard bytes.suffix(checkByteCount).elementsEqual(check(of: content)) else { throw .mistyped }
    var reader = CBORReader(content)
    let version: UInt64
    do throws(CBORError) {
      _ = try reader.readArrayHeader()
      version = try reader.readUnsigned()
    } catch {
      throw .malformed
    }
    guard version == JoinCode.version else { throw .version(version) }
    do throws(CBORError) {
      return try JoinCode(&reader)
    } catch {
      throw .malformed
    }
  }

  /// Reads what follows the version.
  private init(_ reader: inout CBORReader) throws(CBORError) {
    fleet = FleetID(try reader.readDigest())
    let inviter = try reader.readPublicKey()
    invitation = InvitationID(inviter: inviter, serial: try reader.readUnsigned())
    let start = reader.offset
    guard let secret = InvitationSecret(try reader.readBytes()) else { throw CBORError(.wrongLength, at: start) }
    self.secret = secret
    expires = try reader.readUnsigned()
    let count = try reader.readArrayHeader()
    guard count <= JoinCode.addressLimit else { throw CBORError(.tooLong, at: reader.offset) }
    addresses = []
    for _ in 0..<count { addresses.append(try reader.readAddress()) }
    try reader.finish()
  }

  private static func decode(_ text: String) throws(Invalid) -> [UInt8] {
    do throws(Base32.Invalid) {
      return try Base32.decode(text)
    } catch {
      switch error {
      case .character(let character, let place): throw .character(character, place: place)
      case .incomplete: throw .mistyped
      }
    }
  }

  private static func check(of content: [UInt8]) -> [UInt8] {
    Array(SHA256.hash(content).bytes.prefix(checkByteCount))
  }

  private func checkLimits() throws(Invalid) {
    guard addresses.count <= JoinCode.addressLimit else { throw .unfit("\(addresses.count) addresses") }
    for address in addresses where address.utf8.count > StatementCodec.textByteLimit {
      throw .unfit("an address of \(address.utf8.count) bytes")
    }
  }
}

extension CBORReader {
  fileprivate mutating func readAddress() throws(CBORError) -> Text {
    guard try nextMajor() == .bytes else { return try readName() }
    let start = offset
    guard let address = PackedAddress(bytes: try readBytes()) else { throw CBORError(.wrongLength, at: start) }
    return address.text
  }
}

extension CBORWriter {
  /// A dotted IPv4 address with its port takes 7 bytes instead of about 20, which saves 20 letters of typing.
  fileprivate mutating func address(_ text: Text) {
    if let packed = PackedAddress(text: text) { byteString(packed.bytes) } else { self.text(text) }
  }
}

/// An IPv4 address and a port: `a.b.c.d:port` and nothing else.
private struct PackedAddress {
  /// Four bytes of address, two of port, big-endian.
  let bytes: [UInt8]

  init?(bytes: ArraySlice<UInt8>) {
    guard bytes.count == 6 else { return nil }
    self.bytes = Array(bytes)
  }

  /// Nil unless the text is exactly how ``text`` writes it.
  init?(text: Text) {
    let parts = text.string.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let port = UInt16(parts[1]) else { return nil }
    bytes = parts[0].split(separator: ".").compactMap { UInt8($0) } + [UInt8(port >> 8), UInt8(port & 0xff)]
    guard bytes.count == 6, self.text == text else { return nil }
  }

  var text: Text {
    let host = bytes.prefix(4).map(String.init).joined(separator: ".")
    return Text("\(host):\(bytes.suffix(2).reduce(0) { $0 << 8 | Int($1) })")
  }
}
