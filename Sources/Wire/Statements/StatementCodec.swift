import Replication

/// Statements: a signed array whose bytes are kept, hashed and passed on as they came (`Docs/PROTOCOL.md`).
package enum StatementCodec {
  package static let version: UInt64 = 1
  /// Bytes of each name, label and pattern, as of partition names.
  package static let textByteLimit = 255

  /// Fields before the signature.
  private static let unsignedFieldCount = 7

  /// The bytes that an issuer signs, and of which the statement's id is the hash: the tag, then the array of everything
  /// but the signature.
  ///
  /// - Throws: ``StatementError/unknownKind(_:)`` for a body that this version does not know.
  package static func unsigned(
    fleet: FleetID, issuer: PublicKey, sequence: UInt64, scope: Text = "", body: Statement.Body
  ) throws(StatementError) -> [UInt8] {
    var writer = CBORWriter(reserving: 256)
    writer.encoded(DomainTag.statement.bytes)
    writer.arrayHeader(unsignedFieldCount)
    writer.unsigned(version)
    writer.digest(fleet.digest)
    writer.unsigned(body.kind)
    writer.publicKey(issuer)
    writer.unsigned(sequence)
    writer.text(scope)
    try writer.body(body)
    return writer.bytes
  }

  /// The statement of which `unsigned` are the signed bytes, checked as one that was received.
  package static func assemble(
    unsigned: [UInt8], signature: Signature, _ hash: HashFunction
  ) throws(StatementError) -> Statement {
    var writer = CBORWriter(reserving: unsigned.count + 72)
    writer.arrayHeader(unsignedFieldCount + 1)
    // After the tag and the head of one byte come the fields, the same in both forms.
    writer.encoded(unsigned.dropFirst(DomainTag.byteCount + 1))
    writer.signature(signature)
    return try decode(writer.bytes[...], hash)
  }

  /// Reads one statement; its signature is not looked at. Kinds of later versions keep their body unread.
  package static func decode(_ bytes: ArraySlice<UInt8>, _ hash: HashFunction) throws(StatementError) -> Statement {
    guard bytes.count <= Statement.byteLimit else {
      throw .tooLong(byteCount: bytes.count, limit: Statement.byteLimit)
    }
    var reader = CBORReader(bytes)
    let fields = try readFields(&reader)
    let body = try readBody(kind: fields.kind, reader.bytes[fields.body])
    return Statement(
      fleet: fields.fleet, issuer: fields.issuer, sequence: fields.sequence, scope: fields.scope, body: body,
      signature: fields.signature, id: Digest.of(signedBytes(of: bytes), hash), encoded: Array(bytes))
  }

  /// The bytes that were signed, from an encoded statement.
  package static func signedBytes(of encoded: ArraySlice<UInt8>) -> [UInt8] {
    let signatureByteCount = Signature.byteCount + 2
    var writer = CBORWriter(reserving: encoded.count)
    writer.encoded(DomainTag.statement.bytes)
    writer.arrayHeader(unsignedFieldCount)
    writer.encoded(encoded.dropFirst().dropLast(signatureByteCount))
    return writer.bytes
  }

  private struct Fields {
    let fleet: FleetID
    let kind: UInt16
    let issuer: PublicKey
    let sequence: UInt64
    let scope: Text
    let body: Range<Int>
    let signature: Signature
  }

  private static func readFields(_ reader: inout CBORReader) throws(StatementError) -> Fields {
    let version: UInt64
    do throws(CBORError) {
      try reader.readArrayHeader(count: unsignedFieldCount + 1)
      version = try reader.readUnsigned()
    } catch {
      throw .encoding(error)
    }
    guard version == StatementCodec.version else { throw .version(version) }
    do throws(CBORError) {
      let fields = Fields(
        fleet: FleetID(try reader.readDigest()), kind: try reader.readUnsigned(UInt16.self),
        issuer: try reader.readPublicKey(), sequence: try reader.readOrdinal(), scope: try reader.readName(),
        body: try reader.skipValue(), signature: try reader.readSignature())
      try reader.finish()
      return fields
    } catch {
      throw .encoding(error)
    }
  }
}
