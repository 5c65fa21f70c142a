import Replication
import Wire

/// Hash and signatures that cost nearly nothing. They tell different inputs apart, and no spoiled byte leaves a signature
/// good, so that what a liar of these worlds garbles is found out as a real forgery would be. Whoever wanted to could forge:
/// a public key is all that signing takes. So a device of a world signs with its own key alone, whatever else it does.
enum FakeCryptography {
  /// Two lanes of 64 bits over words of eight bytes, spread over four words at the end.
  static let hash: HashFunction = { input in
    var a: UInt64 = 0x243f_6a88_85a3_08d3
    var b = UInt64(input.count) &* 0x9fb2_1c65_1e98_df25
    var offset = 0
    while offset < input.count {
      let word: UInt64
      if offset + 8 <= input.count {
        word = input.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      } else {
        word = input[offset...].reduce(0) { $0 << 8 | UInt64($1) }
      }
      a = (a ^ word) &* 0xff51_afd7_ed55_8ccd
      a ^= a >> 32
      b = (b &+ word ^ a) &* 0xc4ce_b9fe_1a85_ec53
      b ^= b >> 29
      offset += 8
    }
    return Digest(
      words: (
        SimulationRandom.mix(a), SimulationRandom.mix(b), SimulationRandom.mix(a &+ b), SimulationRandom.mix(a ^ b << 1)
      ))
  }

  static func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool {
    signature == FakeKey(publicKey: key).sign(message)
  }

  static func authenticationCode(_ key: [UInt8], _ message: [UInt8]) -> Digest { Digest.of(key + message, hash) }

  static func fleetProof(_ fleet: FleetID, _ exporter: Digest) -> FleetProof {
    FleetProof(fleet, exporter: exporter, hash: hash, authenticationCode: authenticationCode)
  }

  static func fleet(root: PublicKey) -> FleetID { FleetID(Digest.of(DomainTag.fleet.bytes + root.bytes, hash)) }

  static func statement(_ encoded: [UInt8]) -> StatementReading {
    do throws(StatementError) {
      let statement = try StatementCodec.decode(encoded[...], hash)
      let message = StatementCodec.signedBytes(of: encoded[...])
      return verify(statement.signature, message, statement.issuer) ? .statement(statement) : .broken
    } catch {
      return StatementReading(error)
    }
  }

  static func cryptography(of key: FakeKey, _ formats: KnownFormats = .all) -> Cryptography {
    Cryptography(
      hash: hash, verify: verify, sign: key.sign, authenticationCode: authenticationCode, statement: statement,
      holdingsBytes: HoldingsCodec.signedBytes, formats: formats)
  }
}

/// A key whose signature anyone could make.
struct FakeKey: Hashable, Sendable {
  let publicKey: PublicKey

  init(publicKey: PublicKey) { self.publicKey = publicKey }

  init(_ random: inout SimulationRandom) {
    publicKey = PublicKey(Digest(words: (random.next(), random.next(), random.next(), random.next())))
  }

  var device: DeviceID { DeviceID.derived(from: publicKey, FakeCryptography.hash) }

  func sign(_ message: [UInt8]) -> Signature {
    var input = publicKey.bytes
    input.append(contentsOf: message)
    let first = Digest.of(input, FakeCryptography.hash)
    let second = Digest.of(first.bytes + publicKey.bytes, FakeCryptography.hash)
    return Signature(first: first, second: second)
  }

  /// Nil where the body breaks a limit of the encoding, which what is simulated does not.
  func statement(
    _ fleet: FleetID, _ body: Statement.Body, after last: Statement? = nil, scope: Text = ""
  ) -> Statement? {
    let link = last.map { Statement.Link(sequence: $0.sequence, id: $0.id) }
    let unsigned = try? StatementCodec.unsigned(
      fleet: fleet, issuer: publicKey, after: link, scope: scope, body: body)
    guard let unsigned else { return nil }
    return try? StatementCodec.assemble(unsigned: unsigned, signature: sign(unsigned), FakeCryptography.hash)
  }
}
