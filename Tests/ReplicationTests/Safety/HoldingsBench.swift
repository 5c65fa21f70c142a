import Testing

@testable import Replication

/// Exchanges of holdings on a network in memory: every message arrives, every record is stored where nothing says otherwise.
struct HoldingsBench {
  var nodes: [HoldingsNode]
  var milliseconds: UInt64 = 1_000_000
  /// Sessions by both ends; a session's number names both.
  private(set) var links: [SessionID: (Int, Int)] = [:]
  private(set) var sent: [(from: Int, to: Int, HoldingsMessage)] = []

  static let partition: PartitionName = {
    guard let name = try? PartitionName("agency=Gabon") else { preconditionFailure("the name is well formed") }
    return name
  }()

  init(_ count: Int, _ rules: HoldingsRules = HoldingsRules()) {
    nodes = (0..<count).map { HoldingsNode(number: UInt64($0) + 1, rules) }
    for index in nodes.indices { nodes[index].members = Set(nodes.map(\.device)) }
  }

  /// What is sent from now on, in bytes as they are reckoned.
  var sentBytes: Int {
    sent.reduce(0) { sum, item in
      guard case .records(let records) = item.2 else { return sum + 20 }
      return sum + records.reduce(0) { $0 + $1.byteCount }
    }
  }

  var items: [HoldingsItem] { sent.flatMap { if case .records(let items) = $0.2 { items } else { [HoldingsItem]() } } }
  var questions: Int { sent.count { if case .question = $0.2 { true } else { false } } }
  mutating func forgetSent() { sent = [] }

  func sight(_ index: Int) -> HoldingsNode.Sight {
    var scope: [SessionID: Set<PartitionName>] = [:]
    for (id, ends) in links where ends.0 == index || ends.1 == index {
      scope[id] = nodes[ends.0].wanted.intersection(nodes[ends.1].wanted)
    }
    return HoldingsNode.Sight(node: nodes[index], now: MonotonicTime(milliseconds: milliseconds), scope: scope)
  }

  mutating func link(_ a: Int, _ b: Int, _ number: UInt64 = 0) {
    let id = SessionID(rawValue: number * 10_000 + UInt64(a * 100 + b))
    links[id] = (a, b)
    let now = MonotonicTime(milliseconds: milliseconds)
    nodes[a].exchange.live(id, instance: nodes[b].instance, isDialer: true, now)
    nodes[b].exchange.live(id, instance: nodes[a].instance, isDialer: false, now)
  }

  mutating func unlinkAll() {
    for (id, ends) in links {
      nodes[ends.0].exchange.closed(id)
      nodes[ends.1].exchange.closed(id)
    }
    links = [:]
  }

  /// The node holds so much of the chain, which took so many bytes more.
  mutating func hold(_ index: Int, _ sequence: UInt64, chain: UInt64 = 1, byteCount: Int = 0) {
    nodes[index].hold(sequence, chain: chain)
    let name = HoldingsBench.partition
    nodes[index].exchange.grew(nodes[index].id(of: name), name, byteCount: byteCount)
  }

  mutating func with(
    _ index: Int, _ body: (inout HoldingsExchange, HoldingsNode.Sight) -> [HoldingsExchange.Directive]
  ) {
    let sight = sight(index)
    carryOut(body(&nodes[index].exchange, sight), index)
  }

  private mutating func carryOut(_ directives: [HoldingsExchange.Directive], _ index: Int) {
    for directive in directives {
      switch directive {
      case .keep(let signed, let source):
        guard nodes[index].stores else { continue }
        let kept = KeptHoldings(signed, heard: nodes[index].wall)
        nodes[index].stored.removeAll { $0.holdings.subject == kept.holdings.subject }
        nodes[index].stored.append(kept)
        with(index) { $0.kept([(kept, source)], $1) }
      case .send(let id, let message):
        guard let ends = links[id] else { continue }
        let to = ends.0 == index ? ends.1 : ends.0
        sent.append((index, to, message))
        with(to) { $0.received(id, message, $1) }
      }
    }
  }

  mutating func tick(_ index: Int) { with(index) { $0.tick($1) } }

  /// Time goes on, in steps of half a second.
  mutating func pass(_ milliseconds: UInt64) {
    for _ in 0..<milliseconds / 500 {
      self.milliseconds += 500
      for index in nodes.indices {
        nodes[index].wall += 500
        tick(index)
      }
    }
  }

  mutating func ask(_ index: Int) { with(index) { $0.ask([HoldingsBench.partition], $1) } }

  /// What `index` knows that `other` says of itself.
  func word(of other: Int, at index: Int, _ kind: Holdings.Kind = .received) -> Holdings? {
    let subject = Holdings.Subject(device: nodes[other].device, kind: kind)
    return nodes[index].exchange.book[nodes[index].id(of: HoldingsBench.partition), subject]?.holdings
  }
}

struct HoldingsNode {
  let device: PublicKey
  var instance: UUIDValue
  var exchange: HoldingsExchange
  var members: Set<PublicKey> = []
  var vector = VersionVector()
  var wanted: Set<PartitionName> = [HoldingsBench.partition]
  var stores = true
  var stored: [KeptHoldings] = []
  var wall: Int64 = 1_700_000_000_000
  let rules: HoldingsRules
  /// How often the exchange has asked what is held.
  let asked = Asked()

  final class Asked: @unchecked Sendable { var count = 0 }

  init(number: UInt64, _ rules: HoldingsRules) {
    device = PublicKey(Digest(words: (number, 0, 0, 0)))
    instance = UUIDValue(high: 7, low: number)
    exchange = HoldingsExchange(rules)
    self.rules = rules
  }

  mutating func hold(_ sequence: UInt64, chain: UInt64) {
    vector[ReplicaID(high: 0, low: chain)] = ChainPosition(
      sequence: sequence, tip: TipHash(high: chain, low: sequence))
  }

  func id(of name: PartitionName) -> PartitionID { name.id(fleet: FleetID(.zero), hash: HoldingsNode.hash) }

  static let hash: HashFunction = { input in
    var words: (UInt64, UInt64) = (14_695_981_039_346_656_037, 7)
    for byte in input {
      words.0 = (words.0 ^ UInt64(byte)) &* 1_099_511_628_211
      words.1 = (words.1 &+ words.0) &* 6_364_136_223_846_793_005 &+ 1
    }
    return Digest(words: (words.0, words.1, words.0 ^ words.1, words.0 &+ words.1))
  }

  static func signedBytes(_ holdings: Holdings) -> [UInt8] {
    var out = holdings.device.bytes + holdings.partition.text.bytes
    appendBigEndian(holdings.number, to: &out)
    appendBigEndian(holdings.kind.rawValue, to: &out)
    holdings.vector.digest(.vector, hash).append(to: &out)
    appendBigEndian(holdings.ownLast?.sequence ?? 0, to: &out)
    return out
  }

  static func signature(_ message: [UInt8], _ key: PublicKey) -> Signature {
    let digest = Digest.of(key.bytes + message, hash)
    return Signature(first: digest, second: digest)
  }

  struct Sight: HoldingsSight {
    let node: HoldingsNode
    let now: MonotonicTime
    let scope: [SessionID: Set<PartitionName>]

    var wallMilliseconds: Int64 { node.wall }
    var device: PublicKey { node.device }
    var fleet: FleetID { FleetID(.zero) }
    var hash: HashFunction { HoldingsNode.hash }
    var knowsDamage: Bool { true }
    var partitions: [(PartitionID, PartitionName)] { node.wanted.map { (node.id(of: $0), $0) } }
    func id(of name: PartitionName) -> PartitionID { node.id(of: name) }
    func isMember(_ device: PublicKey) -> Bool { node.members.contains(device) }
    /// Nothing here is judged by it.
    func isWith(_ device: PublicKey, _ session: SessionID) -> Bool { false }
    func isInScope(_ session: SessionID, _ partition: PartitionID, _ name: PartitionName) -> Bool {
      scope[session]?.contains(name) ?? false
    }
    func held(_ partition: PartitionID, _ name: PartitionName) -> HeldVector? {
      node.asked.count += 1
      return node.vector.isEmpty ? nil : HeldVector(vector: node.vector, ownLast: nil)
    }
    func signedBytes(of holdings: Holdings) -> [UInt8] { HoldingsNode.signedBytes(holdings) }
    func sign(_ message: [UInt8]) -> Signature { HoldingsNode.signature(message, node.device) }
    func verify(_ signature: Signature, _ message: [UInt8], _ key: PublicKey) -> Bool {
      signature == HoldingsNode.signature(message, key)
    }
  }
}
