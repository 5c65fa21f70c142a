import Replication

/// Statements: a signed array whose bytes are kept, hashed and passed on as they came (`Docs/PROTOCOL.md`).
package enum StatementCodec {
  package static let version: UInt64 = 1
  /// Bytes of each name, label and pattern, as of partition names.
  package static let textByteLimit = 255

  package static let byteLimit = Statement.byteLimit
  package static let plainByteLimit = 16 * 1024

  package static func byteLimit(of kind: UInt16) -> Int {
    switch Statement.Kind(rawValue: kind) {
    case .grant, .end, .raise, .baseline: byteLimit
    default: plainByteLimit
    }
  }

  /// Fields before the signature.
  private static let unsignedFieldCount = 8

  /// The bytes that an issuer signs, and of which the statement's id is the hash: the tag, then the array of everything
  /// but the signature. `previous`: what the issuer signed before it in this scope; nil at its first. `scope`: empty
  /// also for a room's creation.
  ///
  /// - Throws: ``StatementError/unknownKind(_:)`` for a body that this version does not know.
  package static func unsigned(
    fleet: FleetID, issuer: PublicKey, after previous: Statement.Link? = nil, scope: Text = "", body: Statement.Body,
    notes: StatementNotes = StatementNotes()
  ) throws(StatementError) -> [UInt8] {
    var writer = CBORWriter(reserving: 256)
    writer.encoded(DomainTag.statement.bytes)
    writer.arrayHeader(unsignedFieldCount)
    writer.unsigned(version)
    writer.digest(fleet.digest)
    writer.unsigned(body.kind)
    writer.publicKey(issuer)
    writer.unsigned((previous?.sequence ?? 0) + 1)
    if let previous { writer.digest(previous.id) } else { writer.null() }
    writer.text(scope)
    try writer.body(body, notes)
    return writer.bytes
  }

  /// The statement of which `unsigned` are the signed bytes, checked as one that was received.
  ///
  /// - Throws: ``StatementError/notReadBack(kind:)`` where a limit is broken: everybody would take the body for a later
  ///   version's.
  package static func assemble(
    unsigned: [UInt8], signature: Signature, _ hash: HashFunction
  ) throws(StatementError) -> Statement {
    var writer = CBORWriter(reserving: unsigned.count + 72)
    writer.arrayHeader(unsignedFieldCount + 1)
    // After the tag and the head of one byte come the fields, the same in both forms.
    writer.encoded(unsigned.dropFirst(DomainTag.byteCount + 1))
    writer.signature(signature)
    let statement = try decode(writer.bytes[...], hash)
    if case .unknown(let unknown) = statement.body { throw .notReadBack(kind: unknown.kind) }
    return statement
  }

  /// Reads one statement; its signature is not looked at. A kind or shape of a later version keeps its body unread.
  package static func decode(_ bytes: ArraySlice<UInt8>, _ hash: HashFunction) throws(StatementError) -> Statement {
    guard bytes.count <= byteLimit else { throw .tooLong(byteCount: bytes.count, limit: byteLimit) }
    var reader = CBORReader(bytes)
    let fields = try readFields(&reader)
    let head = fields.head
    let limit = byteLimit(of: head.kind)
    guard bytes.count <= limit else { throw .tooLong(byteCount: bytes.count, limit: limit) }
    let (body, notes) = try readBody(kind: head.kind, reader.bytes[fields.body])
    let id = Digest.of(signedBytes(of: bytes), hash)
    return Statement(
      fleet: head.fleet, issuer: head.issuer, sequence: head.sequence, previous: head.previous,
      scope: try scope(of: id, head), body: body, notes: notes, signature: fields.signature, id: id,
      encoded: Array(bytes))
  }

  /// Where a statement stands, by its bytes up to its body. Neither body, signature nor id is looked at.
  package static func place(
    of statement: Digest, encoded beginning: ArraySlice<UInt8>
  ) throws(StatementError) -> StatementPlace {
    var reader = CBORReader(beginning)
    let head = try readHead(&reader)
    return StatementPlace(
      issuer: head.issuer, scope: try scope(of: statement, head), sequence: head.sequence, id: statement)
  }

  /// A room's creation is signed without a scope: the room is named after the creation's own id (rule C24).
  private static func scope(of id: Digest, _ head: Head) throws(StatementError) -> Text {
    guard head.kind == Statement.Kind.room.rawValue else { return head.scope }
    guard head.scope.utf8.isEmpty else { throw .scopedCreation }
    return PartitionName.room(createdBy: id)
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

  /// What stands before the body.
  private struct Head {
    let fleet: FleetID
    let kind: UInt16
    let issuer: PublicKey
    let sequence: UInt64
    let previous: Digest?
    let scope: Text
  }

  private struct Fields {
    let head: Head
    let body: Range<Int>
    let signature: Signature
  }

  private static func readFields(_ reader: inout CBORReader) throws(StatementError) -> Fields {
    let head = try readHead(&reader)
    do throws(CBORError) {
      let fields = Fields(head: head, body: try reader.skipValue(), signature: try reader.readSignature())
      try reader.finish()
      // A number without what it counts from, or the other way about, would be no place in a chain.
      guard (head.sequence == 1) == (head.previous == nil) else { throw CBORError(.outOfRange, at: reader.end) }
      return fields
    } catch {
      throw .encoding(error)
    }
  }

  private static func readHead(_ reader: inout CBORReader) throws(StatementError) -> Head {
    let (count, version): (Int, UInt64)
    do throws(CBORError) {
      (count, version) = (try reader.readArrayHeader(), try reader.readUnsigned())
    } catch {
      throw .encoding(error)
    }
    // What else a later version has, nobody can say.
    guard version == StatementCodec.version else { throw .version(version) }
    do throws(CBORError) {
      guard count == unsignedFieldCount + 1 else { throw CBORError(.unexpectedType, at: reader.offset) }
      return Head(
        fleet: FleetID(try reader.readDigest()), kind: try reader.readUnsigned(UInt16.self),
        issuer: try reader.readPublicKey(), sequence: try reader.readOrdinal(), previous: try reader.readLink(),
        scope: try reader.readName())
    } catch {
      throw .encoding(error)
    }
  }
}

extension CBORReader {
  /// Null at the first statement of a chain.
  fileprivate mutating func readLink() throws(CBORError) -> Digest? {
    guard try nextMajor() == .simple else { return try readDigest() }
    try readNull()
    return nil
  }
}
