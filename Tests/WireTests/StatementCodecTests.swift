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
      let sequence = 1 + generator.next() >> 12
      let unsigned = try StatementCodec.unsigned(
        fleet: fleet, issuer: issuer, sequence: sequence, scope: "room", body: body)
      let signature = generator.signature()
      let statement = try StatementCodec.assemble(unsigned: unsigned, signature: signature, sha256)
      #expect(statement.body == body && statement.fleet == fleet && statement.issuer == issuer)
      #expect(statement.sequence == sequence && statement.scope == "room" && statement.signature == signature)
      #expect(statement.id == Digest.of(unsigned, sha256))
      #expect(StatementCodec.signedBytes(of: statement.encoded[...]) == unsigned)
      #expect(try StatementCodec.decode(statement.encoded[...], sha256) == statement)
      #expect(Array(unsigned.prefix(16)) == DomainTag.statement.bytes)
    }
  }

  @Test("a kind of a later version keeps its body and is read as unknown", arguments: [6, 7, 8, 9, 13, 14, 65535])
  func unknownKinds(kind: UInt16) throws {
    let unordered = encode(kind: kind, body: bytes("a2" + "d83d8201f6" + "18ff" + "6161" + "01"), sequence: 1)
    guard case .encoding(let error) = failure(unordered), error.kind == .keyOrder else {
      return #expect(Bool(false), "keys must ascend")
    }
    let good = encode(kind: kind, body: bytes("a2" + "6161" + "01" + "d83d8201f6" + "18ff"), sequence: 1)
    let statement = try StatementCodec.decode(good[...], sha256)
    #expect(statement.body == .unknown(kind: kind))
    #expect(statement.encoded == good)
    #expect(throws: StatementError.unknownKind(kind)) {
      try StatementCodec.unsigned(
        fleet: statement.fleet, issuer: statement.issuer, sequence: 1, body: .unknown(kind: kind))
    }
  }

  @Test("what is no statement is refused for its reason")
  func refused() {
    let rule = bytes("81616b")
    #expect(failure(encode(kind: 5, body: rule, sequence: 1)) == nil)
    #expect(failure(encode(kind: 5, body: rule, sequence: 0)) == .encoding(CBORError(.outOfRange, at: 71)))
    #expect(failure(encode(kind: 5, body: rule, sequence: 1, version: 2)) == .version(2))
    #expect(failure(encode(kind: 5, body: bytes("82616b00"), sequence: 1)) != nil)
    #expect(failure(encode(kind: 5, body: bytes("00"), sequence: 1)) != nil)
    #expect(failure(encode(kind: 4, body: bytes("83" + "8103" + "05" + "612a"), sequence: 1)) != nil, "level 5")
    #expect(failure(encode(kind: 4, body: bytes("83" + "8103" + "04" + "612a"), sequence: 1)) == nil)
    #expect(failure(encode(kind: 4, body: bytes("83" + "820361" + "61" + "04" + "612a"), sequence: 1)) != nil)
    #expect(failure(encode(kind: 4, body: bytes("83" + "820461" + "61" + "04" + "612a"), sequence: 1)) != nil)
    let key = "5820" + String(repeating: "00", count: 32)
    let membership = { (profile: String) in
      self.encode(kind: 2, body: bytes("85" + key + "606060" + profile), sequence: 1)
    }
    #expect(failure(membership("a1616a616b")) == nil)
    #expect(failure(membership("a1616a01")) != nil, "profiles hold texts")
    let long = Text(String(repeating: "x", count: StatementCodec.textByteLimit + 1))
    #expect(
      failure(
        encode(
          kind: 5,
          body: CBORWriter.encoding {
            $0.arrayHeader(1); $0.text(long)
          }, sequence: 1)) != nil)
    let large = encode(
      kind: 99, body: CBORWriter.encoding { $0.byteString([UInt8](repeating: 0, count: 16384)) }, sequence: 1)
    #expect(failure(large) == .tooLong(byteCount: large.count, limit: Statement.byteLimit))
  }

  @Test(
    "a statement cut off at any byte is refused, a damaged one refused or of one form",
    arguments: 0..<10 as Range<UInt64>)
  func damage(seed: UInt64) throws {
    var generator = SplitMix64(seed: seed)
    for body in generator.bodies() {
      let unsigned = try StatementCodec.unsigned(
        fleet: FleetID(generator.digest()), issuer: PublicKey(generator.digest()), sequence: 3, body: body)
      let statement = try StatementCodec.assemble(unsigned: unsigned, signature: generator.signature(), sha256)
      let mutations = Mutations(original: statement.encoded)
      for part in mutations.truncations {
        #expect(throws: StatementError.self) { try StatementCodec.decode(part, noHash) }
      }
      for _ in 0..<100 {
        guard let read = try? StatementCodec.decode(mutations.random(&generator)[...], noHash) else { continue }
        if case .unknown = read.body { continue }
        let again = try StatementCodec.unsigned(
          fleet: read.fleet, issuer: read.issuer, sequence: read.sequence, scope: read.scope, body: read.body)
        #expect(try StatementCodec.assemble(unsigned: again, signature: read.signature, noHash) == read)
      }
    }
  }

  private func encode(kind: UInt16, body: [UInt8], sequence: UInt64, version: UInt64 = 1) -> [UInt8] {
    CBORWriter.encoding { writer in
      writer.arrayHeader(8)
      writer.unsigned(version)
      writer.digest(.zero)
      writer.unsigned(kind)
      writer.digest(.zero)
      writer.unsigned(sequence)
      writer.text("")
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
  /// None, or what a grant that narrows an earlier one lets stand.
  mutating func ends() -> [Statement.ChainEnd] {
    guard chance(50) else { return [] }
    let position = ChainPosition(sequence: UInt64(below(1_000)), tip: digest().tip)
    return [
      .init(chain: .changes(partition: text(), replica: ReplicaID(high: next(), low: next())), position: position),
      .init(chain: .statements(scope: "", issuer: PublicKey(digest())), position: position),
    ]
  }

  /// One body of each kind that this version knows, grants for each kind of subject.
  mutating func bodies() -> [Statement.Body] {
    let profile = ValueMap(unique: [
      .init(key: "agency", value: .string("Gabon")), .init(key: "rank", value: .string(text())),
    ])
    let subjects: [Statement.Subject] = [.device(PublicKey(digest())), .user(text()), .role(text()), .everyone]
    return [
      .genesis(.init(fleetName: text(), admissionKey: PublicKey(digest()))),
      .membership(
        .init(device: PublicKey(digest()), user: text(), label: text(), role: text(), profile: profile)),
      .replica(.init(replica: replica(), nonce: uuid(), membership: digest())),
      .rule(.init(key: text())),
    ]
      + subjects.map {
        .grant(.init(subject: $0, level: AccessLevel.allCases[below(5)], pattern: text(), ends: ends()))
      }
  }
}
