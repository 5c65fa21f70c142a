import Foundation

@testable import Replication

/// Reads the conformance vectors of chains and rights. Hashes there are 16 opaque bytes; only their order matters.
enum ChainsVectors {
  static func cases(_ kind: String) throws -> [[String: Any]] {
    try (1...(kind == "accept" ? 3 : 2)).flatMap { try read("\(kind)-\($0).json") }
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

  /// How many statements of one device count in a scope.
  static func limit(of entry: [String: Any]) -> Int { entry["limit"] as? Int ?? AdmittedStatements.limit }

  /// Rooms are named after statements, whose ids there are half as long as the product's.
  static func name(_ value: Any?) throws -> Text {
    let name: String = try string(value)
    let id = name.split(separator: "=").last ?? ""
    return Text(name.hasPrefix("conversation=") && id.count == 32 ? name + String(repeating: "0", count: 32) : name)
  }

  static func statements(of entry: [String: Any]) throws -> [Statement] {
    try objects(entry["statements"]).map { json in
      let body: [String: Any] = try cast(json["body"])
      return Statement(
        try statementBody(string(json["kind"]), body), by: Named.key(try string(json["issuer"])),
        sequence: try number(json["seq"]), previous: json["previous"] is String ? try hash(json["previous"]) : nil,
        id: try hash(json["id"]), scope: try name(json["scope"]))
    }
  }

  /// A kind and a field of these names stand for what this build cannot read.
  private static func statementBody(_ kind: String, _ body: [String: Any]) throws -> Statement.Body {
    if kind == "unheard of" { return .unknown(Statement.Unknown(kind: 99)) }
    if body["unheard"] != nil { return .unknown(try unknownShape(kind, body)) }
    switch kind {
    case "genesis": return .genesis(Statement.Genesis(fleetName: ""))
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
          pattern: Text(try string(body["pattern"])), listing: try listing(body)))
    case "rule":
      return .rule(
        Statement.Rule(
          key: Text(try string(body["key"])), fields: Set((body["fields"] as? [String] ?? []).map { Text($0) })))
    case "end":
      let reasons: [String: Statement.End.Reason] = [
        "close": .close, "retire": .retire, "compromised": .compromised,
      ]
      guard let reason = reasons[try string(body["why"])] else { throw Malformed(value: "\(body)") }
      return .end(Statement.End(reason: reason, target: try target(body["target"]), listing: try listing(body)))
    case "raise": return .raise(Statement.Raise(end: try hash(body["end"]), listing: try listing(body)))
    case "baseline":
      let entries = try rows(body["vector"]).map {
        Statement.Baseline.Entry(replica: Named.replica(try string($0[0])), position: try position($0), ownLast: 0)
      }
      return .baseline(Statement.Baseline(partition: try name(body["partition"]), entries: entries))
    case "room": return .room(Statement.Room(by: try hash(body["by"])))
    case "invite":
      return .invitation(
        Statement.Invitation(by: try hash(body["by"]), user: Text(try string(body["user"])), seen: try seen(body)))
    case "remove":
      return .removal(
        Statement.Removal(
          by: try hash(body["by"]), user: Text(try string(body["user"])), seen: try seen(body),
          listing: try listing(body)))
    case "leave":
      return .leave(
        Statement.Leave(by: try hash(body["by"]), user: Text(try string(body["user"])), seen: try seen(body)))
    default: throw Malformed(value: kind)
    }
  }

  private static func unknownShape(_ kind: String, _ body: [String: Any]) throws -> Statement.Unknown {
    switch kind {
    case "membership":
      return Statement.Unknown(
        kind: 2,
        member: Statement.Unknown.Member(
          device: Named.key(try string(body["device"])), role: Text(try string(body["role"])),
          user: Text(try string(body["user"]))))
    case "grant", "end", "raise", "remove": return Statement.Unknown(kind: 4, tips: try listing(body).tips)
    default: return Statement.Unknown(kind: 5)
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

  private static func target(_ value: Any?) throws -> Statement.End.Target {
    let pair: [String] = try cast(value)
    switch pair[0] {
    case "membership": return .membership(try hash(pair[1]))
    case "replica": return .replica(Named.replica(pair[1]))
    case "grant": return .grant(try hash(pair[1]))
    default: throw Malformed(value: pair[0])
    }
  }

  private static func seen(_ body: [String: Any]) throws -> [Digest] {
    try (body["seen"] as? [String] ?? []).map { try hash($0) }
  }

  private static func listing(_ body: [String: Any]) throws -> Statement.Listing {
    let ends = try (body["ends"].map(rows) ?? []).map { group in
      Statement.PartitionEnds(
        partition: try name(group[0]),
        chains: try rows(group[1]).map {
          Statement.ChainEnd(replica: Named.replica(try string($0[0])), position: try position($0))
        })
    }
    let tips = try (body["tips"].map(rows) ?? []).map { group in
      Statement.ScopeTips(
        scope: try name(group[0]),
        tips: try rows(group[1]).map {
          let sequence = try number($0[1])
          return Statement.Tip(
            issuer: Named.key(try string($0[0])), sequence: sequence, id: sequence == 0 ? .zero : try hash($0[2]))
        })
    }
    let keep = (body["keep"] as? [String] ?? []).map { Text($0) }
    return Statement.Listing(ends: ends, tips: tips, keep: keep, more: body["more"] as? Bool ?? false)
  }

  /// `[_, n, hash]`.
  private static func position(_ row: [Any]) throws -> ChainPosition {
    ChainPosition(sequence: try number(row[1]), tip: try hash(row[2]).tip)
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
    let others = Set(fields.map { Text($0) }).subtracting(DocumentRule.fields)
    var origin: ChangeOrigin?
    if let row = json["origin"] as? [Any] {
      origin = ChangeOrigin(
        dot: Dot(replica: Named.replica(try string(row[0])), sequence: try number(row[1])), hash: try hash(row[2]))
    }
    return ChangeFacts(
      recognition: try cast(json["critical"]) ? .unknownExtension : .known,
      ownDocument: OwnDocument(user: Text(try string(json["document"])), otherFields: others), origin: origin)
  }
}
