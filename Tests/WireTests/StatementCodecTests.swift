import Replication
import Testing
import TestSupport

@testable import Wire

@Suite("Statements on the wire")
struct StatementCodecTests {
  @Test("a statement of every kind is read back as it was made", arguments: 0..<20 as Range<UInt64>)
  func roundTrip(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for body in generator.bodies() {
      let (fleet, issuer) = (FleetID(generator.digest()), PublicKey(generator.digest()))
      let isCreation = body.kind == Statement.Kind.room.rawValue
      let scope: Text = isCreation ? "" : "room"
      let previous = isCreation ? nil : generator.link()
      let notes = generator.notes()
      let unsigned = try StatementCodec.unsigned(
        fleet: fleet, issuer: issuer, after: previous, scope: scope, body: body, notes: notes)
      let signature = generator.signature()
      let statement = try StatementCodec.assemble(unsigned: unsigned, signature: signature, sha256)
      #expect(statement.body == body && statement.fleet == fleet && statement.issuer == issuer)
      #expect(statement.sequence == (previous?.sequence ?? 0) + 1 && statement.previous == previous?.id)
      #expect(statement.notes == notes && statement.signature == signature)
      #expect(statement.id == Digest.of(unsigned, sha256))
      #expect(statement.scope == (isCreation ? PartitionName.room(createdBy: statement.id) : scope))
      #expect(StatementCodec.signedBytes(of: statement.encoded[...]) == unsigned)
      #expect(try StatementCodec.decode(statement.encoded[...], sha256) == statement)
      #expect(Array(unsigned.prefix(16)) == DomainTag.statement.bytes)
    }
  }

  @Test("where a statement stands is read from what stands before its body")
  func heads() throws {
    var generator = SplitMix64(seed: 7)
    for body in generator.bodies() {
      let isCreation = body.kind == Statement.Kind.room.rawValue
      let scope: Text = isCreation ? "" : "room"
      let unsigned = try StatementCodec.unsigned(
        fleet: FleetID(.zero), issuer: PublicKey(generator.digest()), after: isCreation ? nil : generator.link(),
        scope: scope, body: body)
      let statement = try StatementCodec.assemble(unsigned: unsigned, signature: zeroSignature, sha256)
      let place = StatementPlace(
        issuer: statement.issuer, scope: statement.scope, sequence: statement.sequence, id: statement.id)
      #expect(try StatementCodec.place(of: statement.id, encoded: statement.encoded[...]) == place)
    }
    let body: [UInt8] = [0xf6]
    let whole = encode(
      kind: .max, body: body, sequence: CBOR.ordinalLimit - 1, previous: .zero,
      scope: PartitionName.room(createdBy: .zero))
    let head = whole.dropLast(body.count + Signature.byteCount + 2)
    #expect(try StatementCodec.place(of: .zero, encoded: head).scope == PartitionName.room(createdBy: .zero))
    #expect(throws: StatementError.self) { try StatementCodec.place(of: .zero, encoded: head.dropLast()) }
  }

  @Test("a kind of a later version keeps its body and is read as unknown", arguments: [13, 14, 64, 65535])
  func unknownKinds(kind: UInt16) throws {
    let unordered = encode(kind: kind, body: bytes("a2" + "d83d8201f6" + "18ff" + "6161" + "01"))
    guard case .encoding(let error) = failure(unordered), error.kind == .keyOrder else {
      return #expect(Bool(false), "keys must ascend")
    }
    let good = encode(kind: kind, body: bytes("a2" + "6161" + "01" + "d83d8201f6" + "18ff"))
    let statement = try StatementCodec.decode(good[...], sha256)
    #expect(statement.body == .unknown(Statement.Unknown(kind: kind)))
    #expect(statement.encoded == good)
    #expect(throws: StatementError.unknownKind(kind)) {
      try StatementCodec.unsigned(fleet: statement.fleet, issuer: statement.issuer, body: statement.body)
    }
  }

  enum Growth: CaseIterable { case itemMore, criticalNote, otherType }

  @Test(
    "a known kind in a later shape is read as unknown, with what every shape shows: device and role, or tips",
    arguments: Growth.allCases)
  func unknownShapes(growth: Growth) throws {
    var generator = SplitMix64(seed: 5)
    for body in generator.bodies() {
      let unsigned = try StatementCodec.unsigned(fleet: FleetID(.zero), issuer: PublicKey(.zero), body: body)
      let known = try StatementCodec.assemble(unsigned: unsigned, signature: zeroSignature, sha256)
      let grown = encode(kind: body.kind, body: try #require(self.grown(known, growth)))
      let statement = try StatementCodec.decode(grown[...], sha256)
      guard case .unknown(let unknown) = statement.body else {
        Issue.record("\(body) is read as if nothing were new")
        continue
      }
      #expect(unknown.kind == body.kind && statement.notes == StatementNotes())
      if case .membership(let membership) = body {
        #expect(
          unknown.member
            == Statement.Unknown.Member(device: membership.device, role: membership.role, user: membership.user))
      } else {
        #expect(unknown.member == nil)
      }
      switch body {
      case .grant(let grant): #expect(unknown.tips == grant.listing.tips)
      case .end(let end): #expect(unknown.tips == end.listing.tips)
      case .raise(let raise): #expect(unknown.tips == raise.listing.tips)
      case .removal(let removal): #expect(unknown.tips == removal.listing.tips)
      default: #expect(unknown.tips.isEmpty)
      }
    }
  }

  /// The body with something that this version does not know behind what it does.
  private func grown(_ statement: Statement, _ growth: Growth) -> [UInt8]? {
    var reader = CBORReader(statement.encoded[...])
    guard (try? reader.readArrayHeader()) != nil else { return nil }
    for _ in 0..<7 { guard (try? reader.skipValue()) != nil else { return nil } }
    guard let range = try? reader.skipValue(), let head = statement.encoded[range].first, head & 0xe0 == 0x80 else {
      return nil
    }
    var body = [UInt8](statement.encoded[range])
    body[0] = head + 1
    switch growth {
    case .itemMore: body += bytes("05")
    case .criticalNote: body += bytes("a1" + "198000" + "40")
    case .otherType: body += bytes("6161")
    }
    return body
  }

  @Test("of a membership, and of what may name tips, the beginning has to be readable in any shape")
  func unreadableBeginnings() {
    for kind in [2, 4, 6, 7, 11] as [UInt16] {
      for body in ["8105", "00", "80"] {
        guard case .malformedBody(kind, _)? = failure(encode(kind: kind, body: bytes(body))) else {
          Issue.record("kind \(kind) with \(body)")
          continue
        }
      }
    }
  }

  @Test("what is no statement is refused for its reason")
  func refused() {
    let rule = bytes("82616b80")
    #expect(failure(encode(kind: 5, body: rule)) == nil)
    #expect(failure(encode(kind: 5, body: rule, sequence: 0)) == .encoding(CBORError(.outOfRange, at: 71)))
    #expect(failure(encode(kind: 5, body: rule, version: 2)) == .version(2))
    let unlinked = encode(kind: 5, body: rule, sequence: 2)
    #expect(failure(unlinked) == .encoding(CBORError(.outOfRange, at: unlinked.count)), "nothing before number 2")
    let linked = encode(kind: 5, body: rule, sequence: 1, previous: .zero)
    #expect(failure(linked) == .encoding(CBORError(.outOfRange, at: linked.count)), "something before number 1")
    #expect(failure(encode(kind: 5, body: rule, sequence: 2, previous: .zero)) == nil)
    let creation = bytes("81" + "5820" + String(repeating: "00", count: 32))
    #expect(failure(encode(kind: 10, body: creation)) == nil)
    #expect(failure(encode(kind: 10, body: creation, scope: "conversation=x")) == .scopedCreation)
    let key = "5820" + String(repeating: "00", count: 32)
    let membership = { (profile: String) -> Statement.Body? in
      let encoded = self.encode(kind: 2, body: bytes("85" + key + "606060" + profile))
      return try? StatementCodec.decode(encoded[...], sha256).body
    }
    if case .membership? = membership("a1616a616b") {} else { Issue.record("profiles hold texts") }
    if case .unknown? = membership("a1616a01") {} else { Issue.record("profiles hold nothing but texts") }
  }

  @Test("a statement with lists may be a mebibyte long, others 16 KiB", arguments: [4, 5, 6, 7, 8, 11, 99] as [UInt16])
  func byteLimits(kind: UInt16) {
    let limit = [4, 6, 7, 8].contains(kind) ? 1 << 20 : 16 * 1024
    let overhead = encode(kind: kind, body: filled(limit)).count - limit
    for excess in [0, 1] {
      let encoded = encode(kind: kind, body: filled(limit - overhead + excess))
      #expect(encoded.count == limit + excess)
      #expect(failure(encoded) == (excess == 0 ? nil : .tooLong(byteCount: encoded.count, limit: limit)))
    }
  }

  /// A body of a later shape, as large as wanted.
  private func filled(_ count: Int) -> [UInt8] {
    CBORWriter.encoding {
      $0.arrayHeader(2)
      $0.arrayHeader(0)
      $0.byteString([UInt8](repeating: 0, count: max(0, count)))
    }
  }

  @Test(
    "a statement cut off at any byte is refused, a damaged one refused or of one form",
    arguments: 0..<10 as Range<UInt64>)
  func damage(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for body in generator.bodies() {
      let unsigned = try StatementCodec.unsigned(
        fleet: FleetID(generator.digest()), issuer: PublicKey(generator.digest()), body: body,
        notes: generator.notes())
      let statement = try StatementCodec.assemble(unsigned: unsigned, signature: generator.signature(), sha256)
      let mutations = Mutations(original: statement.encoded)
      for part in mutations.truncations {
        #expect(throws: StatementError.self) { try StatementCodec.decode(part, noHash) }
      }
      for _ in 0..<100 {
        guard let read = try? StatementCodec.decode(mutations.random(&generator)[...], noHash) else { continue }
        if case .unknown = read.body { continue }
        let link = read.previous.map { Statement.Link(sequence: read.sequence - 1, id: $0) }
        let scope: Text = read.body.kind == Statement.Kind.room.rawValue ? "" : read.scope
        let again = try StatementCodec.unsigned(
          fleet: read.fleet, issuer: read.issuer, after: link, scope: scope, body: read.body, notes: read.notes)
        #expect(try StatementCodec.assemble(unsigned: again, signature: read.signature, noHash) == read)
      }
    }
  }

  private func encode(
    kind: UInt16, body: [UInt8], sequence: UInt64 = 1, previous: Digest? = nil, scope: Text = "", version: UInt64 = 1
  ) -> [UInt8] {
    CBORWriter.encoding { writer in
      writer.arrayHeader(9)
      writer.unsigned(version)
      writer.digest(.zero)
      writer.unsigned(kind)
      writer.digest(.zero)
      writer.unsigned(sequence)
      if let previous { writer.digest(previous) } else { writer.null() }
      writer.text(scope)
      writer.encoded(body)
      writer.signature(zeroSignature)
    }
  }

  private func failure(_ encoded: [UInt8]) -> StatementError? {
    do throws(StatementError) {
      _ = try StatementCodec.decode(encoded[...], sha256)
      return nil
    } catch {
      return error
    }
  }
}

extension CBORWriter {
  static func encoding(_ write: (inout CBORWriter) -> Void) -> [UInt8] {
    var writer = CBORWriter()
    write(&writer)
    return writer.bytes
  }
}

extension SplitMix64 {
  mutating func link() -> Statement.Link? {
    chance(30) ? nil : Statement.Link(sequence: 1 + next() >> 12, id: digest())
  }

  mutating func notes() -> StatementNotes {
    guard chance(50) else { return StatementNotes() }
    return StatementNotes([
      .init(key: StatementNotes.Key.issuedAt, content: digest().bytes.prefix(8).map { $0 }),
      .init(key: 300, content: []),
    ])
  }

  private mutating func position() -> ChainPosition {
    ChainPosition(sequence: UInt64(below(1_000)), tip: digest().tip)
  }

  private mutating func ends() -> [Statement.PartitionEnds] {
    (0..<below(3)).map { _ in
      Statement.PartitionEnds(
        partition: text(),
        chains: (0..<below(3)).map { _ in Statement.ChainEnd(replica: replica(), position: position()) })
    }
  }

  private mutating func tips() -> [Statement.ScopeTips] {
    (0..<below(3)).map { _ in
      Statement.ScopeTips(
        scope: text(),
        tips: (0..<below(3)).map { _ in
          Statement.Tip(issuer: PublicKey(digest()), sequence: UInt64(below(4)), id: digest())
        })
    }
  }

  private mutating func listing(keeps: Bool = true) -> Statement.Listing {
    Statement.Listing(
      ends: ends(), tips: tips(), keep: keeps ? (0..<below(3)).map { _ in text() } : [], more: chance(50))
  }

  private mutating func ids() -> [Digest] { (0..<below(3)).map { _ in digest() } }

  /// One body of each kind that this version knows, grants for each kind of subject, ends for each kind of target.
  mutating func bodies() -> [Statement.Body] {
    let profile = ValueMap(unique: [
      .init(key: "agency", value: .string("Gabon")), .init(key: "rank", value: .string(text())),
    ])
    let subjects: [Statement.Subject] = [.device(PublicKey(digest())), .user(text()), .role(text()), .everyone]
    let targets: [Statement.End.Target] = [.membership(digest()), .replica(replica()), .grant(digest())]
    let entries = (0..<below(3)).map { _ in
      Statement.Baseline.Entry(replica: replica(), position: position(), ownLast: UInt64(below(2_000)))
    }
    return [
      .genesis(.init(fleetName: text())),
      .membership(
        .init(device: PublicKey(digest()), user: text(), label: text(), role: text(), profile: profile)),
      .replica(.init(replica: replica(), nonce: uuid(), membership: digest())),
      .rule(.init(key: text(), fields: Set((0..<below(3)).map { _ in text() }))),
      .raise(.init(end: digest(), listing: listing(keeps: false))),
      .baseline(.init(partition: text(), entries: entries)),
      .invitation(.init(by: digest(), user: text(), seen: ids())),
      .room(.init(by: digest())),
      .removal(.init(by: digest(), user: text(), seen: ids(), listing: listing(keeps: false))),
      .leave(.init(by: digest(), user: text(), seen: ids())),
    ]
      + subjects.map {
        .grant(.init(subject: $0, level: AccessLevel.allCases[below(5)], pattern: text(), listing: listing()))
      }
      + targets.map {
        .end(.init(reason: Statement.End.Reason.allCases[below(3)], target: $0, listing: listing()))
      }
  }
}
