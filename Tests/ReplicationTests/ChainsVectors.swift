import Foundation
import Replication

/// Reads the conformance vectors of chains and rights. Hashes there are 16 opaque bytes; only their order matters.
enum ChainsVectors {
  /// Ends, raises, baselines and rooms have vectors of their own kinds, which later rules will run.
  static let kinds: Set<String> = ["genesis", "membership", "replica", "grant", "rule"]

  static func cases(_ kind: String) throws -> [[String: Any]] {
    try (1...2).flatMap { try read("\(kind)-\($0).json") }.filter { entry in
      try objects(entry["statements"]).allSatisfy { kinds.contains($0["kind"] as? String ?? "") }
    }
  }

  private static func read(_ file: String) throws -> [[String: Any]] {
    let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/\(file)")
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? [String: Any]
    return try objects(json?["cases"])
  }

  struct Malformed: Error {
    let value: String
  }

  static func objects(_ value: Any?) throws -> [[String: Any]] { try cast(value) }
  static func rows(_ value: Any?) throws -> [[Any]] { try cast(value) }
  static func string(_ value: Any?) throws -> String { try cast(value) }
  static func number(_ value: Any?) throws -> UInt64 { UInt64(try cast(value) as Int) }

  static func cast<T>(_ value: Any?) throws -> T {
    guard let value = value as? T else { throw Malformed(value: "\(String(describing: value)) is no \(T.self)") }
    return value
  }

  static func hash(_ value: Any?) throws -> Digest {
    let text: String = try string(value)
    guard text.count == 32, let high = UInt64(text.prefix(16), radix: 16),
      let low = UInt64(text.suffix(16), radix: 16)
    else { throw Malformed(value: text) }
    return Digest(words: (high, low, 0, 0))
  }

  /// `[replica, n, tip]` rows.
  static func vector(_ value: Any?) throws -> VersionVector {
    VersionVector(
      Dictionary(
        uniqueKeysWithValues: try rows(value).map {
          (Named.replica(try string($0[0])), ChainPosition(sequence: try number($0[1]), tip: try hash($0[2]).tip))
        }))
  }

  static func statements(of entry: [String: Any]) throws -> [Statement] {
    try objects(entry["statements"]).map { json in
      let body: [String: Any] = try cast(json["body"])
      return Statement(
        try statementBody(string(json["kind"]), body), by: Named.key(try string(json["issuer"])),
        sequence: try number(json["seq"]), id: try hash(json["id"]), scope: Text(try string(json["scope"])))
    }
  }

  private static func statementBody(_ kind: String, _ body: [String: Any]) throws -> Statement.Body {
    switch kind {
    case "genesis": return .genesis(Statement.Genesis(fleetName: "", admissionKey: Named.key("admission")))
    case "membership":
      let agency = ValueMap.Entry(key: "agency", value: .string(Text(try string(body["agency"]))))
      return .membership(
        Statement.Membership(
          device: Named.key(try string(body["device"])), user: Text(try string(body["user"])), label: "",
          role: Text(try string(body["role"])), profile: ValueMap(ascending: [agency])))
    case "replica":
      return .replica(
        Statement.ReplicaDeclaration(
          replica: Named.replica(try string(body["replica"])), nonce: .zero, membership: try hash(body["membership"])))
    case "grant":
      return .grant(
        Statement.Grant(
          subject: try subject(body["subject"]),
          level: AccessLevel(rawValue: UInt8(try number(body["level"]))) ?? .none,
          pattern: Text(try string(body["pattern"])), ends: try rows(body["ends"]).map(end)))
    case "rule": return .rule(Statement.Rule(key: Text(try string(body["key"]))))
    default: throw Malformed(value: kind)
    }
  }

  private static func subject(_ value: Any?) throws -> Statement.Subject {
    let pair: [String] = try cast(value)
    switch pair[0] {
    case "device": return .device(Named.key(pair[1]))
    case "user": return .user(Text(pair[1]))
    case "role": return .role(Text(pair[1]))
    case "*": return .everyone
    default: throw Malformed(value: pair[0])
    }
  }

  /// `[partition, replica or @device, n, hash]`.
  private static func end(_ row: [Any]) throws -> Statement.ChainEnd {
    let (partition, chain) = (Text(try string(row[0])), try string(row[1]))
    return Statement.ChainEnd(
      chain: chain.hasPrefix("@")
        ? .statements(scope: partition, issuer: Named.key(String(chain.dropFirst())))
        : .changes(partition: partition, replica: Named.replica(chain)),
      position: ChainPosition(sequence: try number(row[2]), tip: try hash(row[3]).tip))
  }

  static func run(_ json: [String: Any], in partition: PartitionName) throws -> RunSummary {
    let changes = try objects(json["changes"])
    return RunSummary(
      partition: partition, replica: Named.replica(try string(json["replica"])), first: try number(json["first"]),
      hashBefore: try hash(json["prev"]), hashes: try changes.map { try hash($0["hash"]) },
      context: try vector(json["context"]), signer: Named.key(try string(json["signer"])),
      facts: try changes.map(facts))
  }

  private static func facts(_ json: [String: Any]) throws -> ChangeFacts {
    let fields: [String] = try cast(json["fields"])
    let fits = fields.allSatisfy { DocumentRule.fields.contains(Text($0)) }
    var origin: ChangeOrigin?
    if let row = json["origin"] as? [Any] {
      origin = ChangeOrigin(
        dot: Dot(replica: Named.replica(try string(row[0])), sequence: try number(row[1])), hash: try hash(row[2]))
    }
    return ChangeFacts(
      recognition: try cast(json["critical"]) ? .unknownExtension : .known,
      ownDocument: fits ? Text(try string(json["document"])) : nil, origin: origin)
  }
}
