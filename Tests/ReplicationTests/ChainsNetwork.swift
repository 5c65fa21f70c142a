@testable import Replication

/// A handful of nodes that write, meet in pairs, lower and raise rights; the last may sign two changes for one dot.
struct ChainsNetwork {
  struct Node {
    let device: String
    var keeper: ChainsKeeper
    var statements: [Statement]
    var replica: ReplicaID?
    var nonce = 0
    var previous = VersionVector()
  }

  struct Complaint: Error, CustomStringConvertible {
    let description: String
  }

  let partition: PartitionName
  let hasForger: Bool
  private(set) var nodes: [Node] = []
  private var random: ChainsRandom
  private(set) var taken = 0
  private(set) var setAside = 0

  init(seed: UInt64) throws {
    random = ChainsRandom(seed: seed)
    partition = try Named.partition("/team/red")
    let count = 3 + random.below(3)
    hasForger = random.chance(50)
    var base = Base()
    base.say(.genesis(Statement.Genesis(fleetName: "")))
    for index in 0..<count { base.member("d\(index)", role: index == 0 ? "admin" : "officer") }
    base.say(ChainsNetwork.grant(.role("admin"), .manage))
    base.say(ChainsNetwork.grant(.role("officer"), .write), by: Named.key("d0"))
    for index in 0..<count {
      let keeper = ChainsKeeper(
        partition, authority: Authority(named: base.statements), genesis: ChainsHistory.genesis)
      nodes.append(Node(device: "d\(index)", keeper: keeper, statements: base.statements))
    }
  }

  private struct Base {
    var statements: [Statement] = []

    mutating func say(_ body: Statement.Body, by issuer: PublicKey = Named.root) {
      let id = Digest(words: (UInt64(statements.count + 1), 0, 0, 0))
      statements.append(Statement(body, by: issuer, after: statements, id: id))
    }

    mutating func member(_ device: String, role: Text) {
      say(
        .membership(
          Statement.Membership(
            device: Named.key(device), user: Text("u-" + device), label: "", role: role, profile: ValueMap())))
    }
  }

  private static func grant(
    _ subject: Statement.Subject, _ level: AccessLevel, ends: [Statement.PartitionEnds] = []
  ) -> Statement.Body {
    .grant(
      Statement.Grant(
        subject: subject, level: level, pattern: "/team/*", listing: Statement.Listing(ends: ends)))
  }

  // MARK: Steps

  mutating func step() throws {
    let index = random.below(nodes.count)
    switch random.below(100) {
    case ..<40: try write(index)
    case ..<46 where hasForger: try forge()
    case ..<50: try changeRights()
    default: try meet(index, random.below(nodes.count), cut: random.chance(30) ? random.below(4) : nil)
    }
  }

  private mutating func say(_ index: Int, _ body: Statement.Body) throws {
    let key = Named.key(nodes[index].device)
    let statement = Statement(body, by: key, after: nodes[index].statements, id: random.digest())
    nodes[index].statements.append(statement)
    try nodes[index].keeper.adopt(Authority(named: nodes[index].statements))
  }

  private mutating func write(_ index: Int) throws {
    var log: PartitionLog { nodes[index].keeper.log }
    let device = nodes[index].device
    guard log.authority.level(of: Named.key(device), in: partition) >= .write else { return }
    let isOpen = nodes[index].replica.map { log.forkPoints[$0] == nil && log.bound(of: $0) == .max } ?? false
    if !isOpen {
      nodes[index].nonce += 1
      let replica = Named.replica("\(device).\(nodes[index].nonce)")
      let membership = log.authority.member(of: Named.key(device))?.id ?? .zero
      (nodes[index].replica, nodes[index].previous) = (replica, VersionVector())
      try say(
        index,
        .replica(Statement.ReplicaDeclaration(replica: replica, nonce: .zero, membership: membership)))
    }
    guard let replica = nodes[index].replica, log.bound(of: replica) > 0 else { return }
    let context = log.nextContext(of: replica, after: nodes[index].previous)
    nodes[index].previous = context
    let chain = log.chains[replica] ?? log.newChain(replica)
    let run = RunSummary(
      partition: partition, replica: replica, first: chain.received + 1,
      hashBefore: chain.hash(at: chain.received) ?? .zero, hashes: (0...random.below(3)).map { _ in random.digest() },
      context: context, signer: Named.key(device))
    try nodes[index].keeper.learn(run)
  }

  /// Signs another run in place of one of the last node's own.
  private mutating func forge() throws {
    let index = nodes.count - 1
    let key = Named.key(nodes[index].device)
    guard let old = nodes[index].keeper.runs.filter({ $0.signer == key }).randomElement(using: &random) else { return }
    let run = RunSummary(
      partition: partition, replica: old.replica, first: old.first, hashBefore: old.hashBefore,
      hashes: [random.digest()], context: old.context, signer: key)
    try nodes[index].keeper.learn(run)
  }

  /// The admin lowers the officers' grant, listing what it has accepted, or some of it; or grants again.
  private mutating func changeRights() throws {
    guard random.chance(60) else { return try say(0, ChainsNetwork.grant(.role("officer"), .write)) }
    let ends = nodes[0].keeper.log.accepted.sorted.compactMap { entry -> Statement.ChainEnd? in
      random.chance(80)
        ? Statement.ChainEnd(replica: entry.replica, position: entry.position) : nil
    }
    let group = Statement.PartitionEnds(partition: partition.text, chains: ends)
    try say(0, ChainsNetwork.grant(.role("officer"), .write))
    try say(0, ChainsNetwork.grant(.role("officer"), random.chance(50) ? .read : .none, ends: [group]))
  }

  // MARK: Meeting

  /// `from` gives what it has to `to`: statements, headers of chains whose histories differ, then the stream.
  mutating func meet(_ from: Int, _ to: Int, cut: Int? = nil) throws {
    guard from != to else { return }
    let known = Set(nodes[to].statements.map(\.id))
    nodes[to].statements += nodes[from].statements.filter { !known.contains($0.id) }
    try nodes[to].keeper.adopt(Authority(named: nodes[to].statements))
    try searchForks(from, to)

    let (sender, receiver) = (nodes[from].keeper, nodes[to].keeper)
    var stream = OutgoingStream(announced: receiver.log.clipped)
    let runs = stream.select(from: sender.runs, of: sender.log, stored: sender.stored)
    for run in runs.prefix(cut ?? runs.count) {
      switch try nodes[to].keeper.deliver(run) {
      case .take:
        taken += 1
        try nodes[to].keeper.learn(run)
      case .have: break
      case .aside:
        setAside += 1
        try nodes[to].keeper.learn(run, content: false)
      case let verdict: throw Complaint(description: "\(nodes[from].device) to \(nodes[to].device): \(verdict)")
      }
    }
  }

  private mutating func searchForks(_ from: Int, _ to: Int) throws {
    let (log, receiver) = (nodes[from].keeper.log, nodes[to].keeper)
    let differing = log.clipped.entries.filter {
      receiver.log.judge($0.value, of: $0.key, stored: receiver.stored) == .differs
    }
    for replica in Set(differing.keys).union(log.forkPoints.keys) {
      for (giver, taker) in [(from, to), (to, from)] {
        let keeper = nodes[giver].keeper
        for run in (keeper.runs + keeper.headers).filter({ $0.replica == replica }) {
          guard nodes[taker].keeper.log.authority.refusal(of: run, genesis: ChainsHistory.genesis(replica)) == nil
          else {
            continue
          }
          try nodes[taker].keeper.learn(run, content: false)
        }
      }
    }
  }

  /// Everybody meets everybody until nothing moves.
  mutating func settle() throws {
    for _ in 0..<12 {
      let before = taken
      for from in nodes.indices { for to in nodes.indices { try meet(from, to) } }
      if taken == before { return }
    }
    throw Complaint(description: "still moving after 12 rounds")
  }
}
