import Links
import Replication
import Transport

/// What is wrong with a rule, as one sentence.
package struct LinkRuleError: Error, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}

extension LinkRule {
  private static let members = ["class", "interfaces", "routes", "bytesPerDay", "carries"]

  /// Reads `{"class": "satellite", "interfaces": ["ppp*"], "routes": ["10.20.0.0/16"], "bytesPerDay": 5000000,
  /// "carries": ["agency=Gabon", "*"]}`.
  package init(_ map: ValueMap) throws(LinkRuleError) {
    for entry in map.entries where !LinkRule.members.contains(entry.key.string) {
      throw LinkRuleError(
        "a link has no member \(entry.key.string); it has \(LinkRule.members.joined(separator: ", "))")
    }
    let classes = LinkClass.allCases.map(\.rawValue).joined(separator: ", ")
    guard case .string(let name)? = map["class"], let linkClass = LinkClass(rawValue: name.string) else {
      throw LinkRuleError("a link needs a class, one of \(classes)")
    }
    self.init(linkClass)
    interfaces = try LinkRule.texts(map, "interfaces") ?? []
    routes = try (LinkRule.texts(map, "routes") ?? []).map(LinkRule.route)
    switch map["bytesPerDay"] {
    case nil: break
    case .null: bytesPerDay = nil
    case .int(let bytes) where bytes > 0: bytesPerDay = UInt64(bytes)
    default: throw LinkRuleError("bytesPerDay is a whole number above 0, or null for no limit")
    }
    carries = try LinkRule.texts(map, "carries")
    for pattern in carries ?? [] where !LinkRule.isPattern(pattern) {
      throw LinkRuleError("\(pattern.string) is no partition, and no beginning of a name with * behind")
    }
    guard carries.map({ $0.count <= LinkRule.carriesLimit }) ?? true else {
      throw LinkRuleError("a link carries up to \(LinkRule.carriesLimit) patterns; use * at the end of one")
    }
  }

  private static func isPattern(_ text: Text) -> Bool {
    text.utf8.last == UInt8(ascii: "*") || (try? PartitionName(text)) != nil
  }

  private static func texts(_ map: ValueMap, _ name: Text) throws(LinkRuleError) -> [Text]? {
    guard let value = map[name] else { return nil }
    guard case .array(let items) = value else { throw LinkRuleError("\(name.string) is a list of strings") }
    var texts: [Text] = []
    for item in items {
      guard case .string(let text) = item, !text.utf8.isEmpty else {
        throw LinkRuleError("\(name.string) is a list of strings")
      }
      texts.append(text)
    }
    return texts
  }

  private static func route(_ text: Text) throws(LinkRuleError) -> LinkRoute {
    let parts = text.string.split(separator: "/", omittingEmptySubsequences: false)
    let bits = parts.count == 2 ? Int(parts[1]) : nil
    guard let host = parts.first.flatMap({ SocketAddress.Host(String($0)) }), parts.count == 1 || bits != nil,
      let route = LinkRoute(host, bitCount: bits ?? LinkRoute.bitCount(of: host))
    else { throw LinkRuleError("\(text.string) is no route; write one as 10.20.0.0/16 or fd00::/8") }
    return route
  }
}
