import Foundation
import Replication
import Testing

@testable import Identity

/// `Tests/Interop/vectors.json`, which the outside peer wrote.
struct InteropVectors: Decodable {
  static func stored() throws -> InteropVectors {
    let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Interop/vectors.json")
    return try JSONDecoder().decode(InteropVectors.self, from: Data(contentsOf: path))
  }

  let identity: IdentityVectors
  let statements: [StatementVector]
  let runs: [RunVector]
  let messages: MessageVectors
  let records: RecordVectors
  let signatures: [SignatureVector]

  struct IdentityVectors: Decodable {
    let root_seed, device_seed, device_key, fleet, device, nonce, replica, partition, secret: HexText
    let discovery_tag, exporter, certificate: HexText
    let partition_name, instance, join_code: String
    let join: Join

    struct Join: Decodable {
      let serial, expires: UInt64
      let addresses: [String]
    }
  }

  struct StatementVector: Decodable {
    let seed, id, encoded: HexText
    let previous: HexText?
    let sequence: UInt64
    let kind: UInt16
  }

  struct MessageVectors: Decodable {
    let hello, answer, join_request, join_accepted: HexText
    let others: [HexText]
  }

  struct RecordVectors: Decodable {
    let holdings: [HexText]
    let bundle, list_hash: HexText
    let pieces: [HexText]
  }

  /// Hostile or honest, with the verdict of the rule on it.
  struct SignatureVector: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let key, message, signature: HexText
    let is_accepted: Bool
    var testDescription: String { name }
  }

  struct RunVector: Decodable, Sendable {
    let name: String
    let encoded, context: HexText
    let hashes: [HexText]
    let key_hashes: [[HexText]]
    let payload_counts: [Int]
    let headers_only: [Int]
  }
}

/// Bytes in hexadecimal.
struct HexText: Decodable, Sendable {
  let text: String
  let bytes: [UInt8]

  init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
    bytes = try hex(text)
  }

  var digest: Digest { get throws { try #require(Digest(bytes)) } }
}
