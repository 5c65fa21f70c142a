import Replication
import Testing
import TestSupport

@testable import Identity

/// Keys and ids that are the same in every run; `number` tells them apart.
enum Fixture {
  static func key(_ number: UInt8) throws -> SigningKey {
    try #require(SigningKey(seed: [UInt8](repeating: number, count: SigningKey.seedByteCount)))
  }

  static func fleet(_ number: UInt8 = 1) throws -> FleetID { FleetID(root: try key(number).publicKey) }

  static func secret(_ number: UInt8 = 7) throws -> InvitationSecret {
    try #require(InvitationSecret([UInt8](repeating: number, count: InvitationSecret.byteCount)))
  }

  static func randomSource(seed: UInt64) -> RandomSource {
    var generator = SplitMix64(seed: seed)
    return { generator.bytes($0) }
  }
}

func hex(_ text: String) throws -> [UInt8] { try #require(Hex.decode(text.filter { !$0.isWhitespace })) }
