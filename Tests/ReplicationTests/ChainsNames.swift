import TestSupport

@testable import Replication

/// Short names as ids: their UTF-8, filled up with zero bytes, so that failures can be read.
enum Named {
  static func key(_ name: String) -> PublicKey { PublicKey(digest(name)) }

  static func digest(_ name: String) -> Digest {
    Digest(padded(name, to: Digest.byteCount)) ?? .zero
  }

  /// `device.nonce`, standing for the hash of both.
  static func replica(_ name: String) -> ReplicaID { ReplicaID(padded(name, to: 16)) ?? .zero }

  static func partition(_ name: String) throws -> PartitionName { try PartitionName(Text(name)) }

  static func name(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }

  /// A replica's name begins with its device's.
  static let certificate: ReplicaCertificate = { declaration, issuer in
    name(declaration.replica.bytes).hasPrefix(name(issuer.bytes) + ".")
  }

  static let root = key("root")

  private static func padded(_ name: String, to count: Int) -> [UInt8] {
    let bytes = Array(name.utf8)
    return bytes + Array(repeating: 0, count: max(0, count - bytes.count))
  }
}

extension Authority {
  init(named statements: some Collection<Statement>, limit: Int = AdmittedStatements.limit) {
    self.init(root: Named.root, statements: statements, limit: limit, certificate: Named.certificate)
  }
}

extension Statement {
  init(_ body: Body, by issuer: PublicKey, sequence: UInt64, previous: Digest?, id: Digest, scope: Text = "") {
    let signature = Signature(first: .zero, second: .zero)
    self.init(
      fleet: FleetID(.zero), issuer: issuer, sequence: sequence, previous: previous, scope: scope, body: body,
      signature: signature, id: id, encoded: [])
  }
}

extension OwnDocument: ExpressibleByStringLiteral {
  public init(stringLiteral user: String) { self.init(user: Text(user)) }
}

extension Statement {
  /// The body as what its issuer says next in the scope, after the highest of those in `statements`.
  init(_ body: Body, by issuer: PublicKey, after statements: [Statement], id: Digest, scope: Text = "") {
    let previous = statements.filter { $0.issuer == issuer && $0.scope == scope }
      .min { ($1.sequence, $0.id) < ($0.sequence, $1.id) }
    self.init(
      body, by: issuer, sequence: (previous?.sequence ?? 0) + 1, previous: previous?.id, id: id, scope: scope)
  }
}

extension Signature {
  init(first: Digest, second: Digest) {
    guard let signature = Signature(first.bytes + second.bytes) else { preconditionFailure("64 bytes") }
    self = signature
  }
}

/// What random histories of chains draw, with a seed.
struct ChainsRandom: RandomNumberGenerator {
  private var generator: SplitMix64

  init(seed: UInt64) { generator = SplitMix64(seed: seed) }

  mutating func next() -> UInt64 { generator.next() }

  mutating func below(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self) }
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
  mutating func digest() -> Digest { Digest(words: (next(), next(), next(), next())) }
}
