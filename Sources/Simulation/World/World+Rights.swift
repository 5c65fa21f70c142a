import Engine
import Replication

// Who says what of rights.
extension World {
  /// The root lowers a grant at some node, or raises it again. What it lists is what that node accepts, or less of some
  /// chains.
  func changeRights() {
    if plan.hasFurtherMemberships, random.chance(25) { return admitAgain() }
    guard let process = random.pick(nodes.compactMap(\.process).filter(\.node.isJudged)),
      let register = register()
    else { return }
    let isLowered = random.chance(60)
    let ends = process.mesh.partitions.values.sorted { $0.id < $1.id }.map { partition in
      Statement.PartitionEnds(
        partition: partition.name.text,
        chains: partition.log.accepted.sorted.map { replica, position in
          let earlier = random.chance(20) ? earlierPosition(of: replica, partition.id, process.node) : nil
          return Statement.ChainEnd(replica: replica, position: earlier ?? position)
        })
    }
    let level = isLowered ? random.pick([AccessLevel.read, .carry, .none]) ?? .read : .write
    guard let said = fleet.grant(level, register, ends: isLowered ? ends : []) else { return }
    count(.rightChanged)
    note("grant \(level) of \(register) at \(process.node.slot)")
    process.put(.call { $0.add(said) })
  }

  /// A device that is a member already gets another membership, with rights of its own.
  private func admitAgain() {
    guard furtherMemberships < World.furtherMembershipLimit,
      let process = random.pick(nodes.compactMap(\.process).filter(\.node.isJudged)),
      let node = random.pick(nodes.filter(\.isHonest)), let name = random.pick(plan.partitions)
    else { return }
    furtherMemberships += 1
    count(.rightChanged)
    note("another membership of \(node.slot), which writes \(name), at \(process.node.slot)")
    let membership = fleet.membership(of: node.key.publicKey, user: node.user, role: Fleet.furtherRole)
    let register = Fleet.Register(subject: .role(Fleet.furtherRole), pattern: name.text)
    let said = fleet.grant(.write, register, ends: []) ?? membership
    process.put(.call { $0.add(said) })
  }

  private static let furtherMembershipLimit = 3

  /// Somewhere in what the node holds of the chain, perhaps on a branch that does not count.
  private func earlierPosition(of replica: ReplicaID, _ partition: PartitionID, _ node: SimulatedNode) -> ChainPosition?
  {
    guard let run = random.pick(node.directory.book.partitions[partition]?.runs[replica] ?? []) else { return nil }
    let sequence = run.first + random.next() % UInt64(run.observed.changes.count)
    return run.hash(at: sequence).map { ChainPosition(sequence: sequence, tip: $0.tip) }
  }

  /// Often one that was granted before, so that the new grant takes its place.
  private func register() -> Fleet.Register? {
    if random.chance(50) { return random.pick(fleet.registers) }
    guard let name = random.pick(plan.partitions), let node = random.pick(nodes) else { return nil }
    var subjects: [Statement.Subject] = [.everyone, .user(node.user), .role("member"), .device(node.key.publicKey)]
    if plan.hasFurtherMemberships { subjects.append(.role(Fleet.furtherRole)) }
    return Fleet.Register(
      subject: random.pick(subjects) ?? .everyone, pattern: random.pick([name.text, "al*", "*"]) ?? "*")
  }

  // MARK: Admins

  /// An admin asks for something that its node then lists and signs: grants, the end of a device, and what ends and
  /// lowerings hold back. Where there are two, often both ask at once, and often for the same.
  func askForRights() {
    guard plan.admins > 1 else { return ask(World.inviter, request(of: World.inviter)) }
    let first = random.below(plan.admins)
    let second = plan.admins - 1 - first
    let asked = request(of: first)
    ask(first, asked)
    guard asked != nil, random.chance(60) else { return }
    let other = random.chance(50) ? asked : request(of: second)
    if other != nil, isHeard(second) { count(.adminsAtOnce) }
    ask(second, other)
  }

  private func isHeard(_ admin: Int) -> Bool { nodes[admin].process != nil && nodes[admin].isJudged }

  private func ask(_ slot: Int, _ request: RightsRequest?) {
    let admin = nodes[slot]
    guard isHeard(slot), let process = admin.process, let request else { return }
    count(.rightChanged)
    note(plan.admins > 1 ? "admin \(slot): \(request)" : "admin: \(request)")
    let author = StatementAuthor(key: admin.key.publicKey, sign: admin.key.sign)
    process.put(
      .call { engine in
        // Refused where others have taken his word from him meanwhile.
        guard let plan = try? engine.plan(request, authors: [author]) else { return }
        try? engine.carryOut(plan, authors: [author])
      })
  }

  private func request(of admin: Int) -> RightsRequest? {
    isHeard(admin) ? nodes[admin].process.flatMap(request) : nil
  }

  /// Whom the inviter lets in behind his end is a member for nobody who knows of it, and is told by nobody why.
  private func isInviters(_ node: SimulatedNode) -> Bool { node.key == nodes[World.inviter].key }

  private func request(to process: NodeProcess) -> RightsRequest? {
    switch random.below(10) {
    case 0..<4:
      guard let register = register() else { return nil }
      let level = random.chance(60) ? random.pick([AccessLevel.read, .carry, .none]) ?? .read : .write
      return .grant(register.subject, level, register.pattern)
    case 4..<6:
      // One of them at most: the others have to go on among themselves.
      let ended = nodes.dropFirst().first { $0.isEndAsked }
      let candidates = nodes.dropFirst().filter { $0.process != nil && !(plan.admins > 1 && isInviters($0)) }
      guard plan.nodeCount > 2, let node = ended ?? random.pick(candidates) else { return nil }
      for copy in nodes where copy.key == node.key { copy.isEndAsked = true }
      return .end(node.key.publicKey, random.pick([.retire, .revoke, .revoke, .compromised]) ?? .revoke, nil)
    default:
      let narrowings = process.node.directory.book.statements.values.filter(Knowledge.isNarrowing).map(\.id).sorted()
      return random.pick(narrowings).map { .raise([$0]) }
    }
  }
}
