import Engine
import Replication

/// Rooms of one world, and what people do in them. Drawn apart, so that worlds without rooms are what they were.
struct RoomLife {
  /// Made by somebody, whether or not its creation reached a disk.
  private(set) var rooms: [PartitionName] = []
  var random: SimulationRandom

  static let roomLimit = 3
  static let percent = 20

  init(seed: UInt64) { random = SimulationRandom(seed: SimulationRandom.mix(seed &+ 0x726f_6f6d)) }

  mutating func opened(_ name: PartitionName) { rooms.append(name) }
}

/// What somebody says in a room, signed when his node's turn has come.
private struct RoomAct: Sendable {
  enum Kind: Sendable {
    case invite(Text)
    /// With what of the removed user's work stands: all that is here, or nothing.
    case remove(Text, keepsWork: Bool)
    case leave
  }

  let kind: Kind
  let room: PartitionName
  let key: FakeKey

  func statement(_ state: EngineState) -> Statement? {
    let authority = state.mesh.authority
    // Nobody begins in a room of which he knows nothing.
    guard let member = authority.member(of: key.publicKey), !authority.statements(of: room.text).isEmpty else {
      return nil
    }
    let last = authority.lastStatement(of: key.publicKey, in: room.text).flatMap { authority[$0.id] }
    let seen = authority.statements(of: room.text).filter(\.isSeen).map(\.id)
    let body: Statement.Body =
      switch kind {
      case .invite(let user): .invitation(Statement.Invitation(by: member.id, user: user, seen: seen))
      case .remove(let user, let keepsWork):
        .removal(
          Statement.Removal(
            by: member.id, user: user, seen: seen,
            listing: keepsWork ? standing(of: user, state) : Statement.Listing()))
      case .leave: .leave(Statement.Leave(by: member.id, user: member.user, seen: seen))
      }
    return key.statement(state.identity.fleet, body, after: last, scope: room.text)
  }

  private func standing(of user: Text, _ state: EngineState) -> Statement.Listing {
    let authority = state.mesh.authority
    let log = state.mesh.partitions[room.id(fleet: state.identity.fleet, hash: FakeCryptography.hash)]?.log
    let chains = (log?.clipped ?? VersionVector()).sorted.filter { replica, _ in
      authority.author(of: replica).map { authority.member(of: $0)?.user == user } ?? false
    }
    let said = authority.statements(of: room.text).filter { authority.member(of: $0.issuer)?.user == user }
    let tips = Dictionary(grouping: said, by: \.issuer).values.compactMap { $0.max { $0.sequence < $1.sequence } }
      .sorted { $0.issuer < $1.issuer }
    return Statement.Listing(
      ends: chains.isEmpty
        ? []
        : [
          .init(
            partition: room.text,
            chains: chains.map { Statement.ChainEnd(replica: $0.replica, position: $0.position) })
        ],
      tips: tips.isEmpty
        ? []
        : [.init(scope: room.text, tips: tips.map { .init(issuer: $0.issuer, sequence: $0.sequence, id: $0.id) })])
  }
}

extension Statement {
  fileprivate var isSeen: Bool {
    switch body {
    case .invitation, .removal, .leave: true
    default: false
    }
  }
}

extension World {
  /// Those of the plan, and rooms.
  var partitions: [PartitionName] { plan.partitions + (roomLife?.rooms ?? []) }

  /// Somebody does something about a room, or in one.
  func actInRoom() {
    guard isTroubled, roomLife != nil else { return }
    queue.put(.actInRoom, at: clock + drawForRooms { $0.between(150...900) })
    guard let process = drawForRooms({ $0.pick(nodes.compactMap(\.process).filter { $0.node.isHonest }) }) else {
      return
    }
    let rooms = roomLife?.rooms ?? []
    guard rooms.count == RoomLife.roomLimit || !rooms.isEmpty && drawForRooms({ $0.chance(85) }) else {
      return makeRoom(process)
    }
    guard let room = drawForRooms({ $0.pick(rooms) }) else { return }
    let user = Text("u\(drawForRooms { $0.below(3) })")
    switch drawForRooms({ $0.below(100) }) {
    case 0..<35: say(.invite(user), in: room, process)
    case 35..<50: say(.remove(user, keepsWork: drawForRooms { $0.chance(70) }), in: room, process)
    case 50..<56: say(.leave, in: room, process)
    default: write(process, in: room)
    }
  }

  private func drawForRooms<Drawn>(_ draw: (inout SimulationRandom) -> Drawn) -> Drawn {
    guard var random = roomLife?.random else { return draw(&self.random) }
    let drawn = draw(&random)
    roomLife?.random = random
    return drawn
  }

  private func makeRoom(_ process: NodeProcess) {
    let key = process.node.key
    guard let by = process.mesh.authority.member(of: key.publicKey)?.id,
      let creation = key.statement(fleet.id, .room(Statement.Room(by: by))),
      let name = try? PartitionName(creation.scope), !partitions.contains(name)
    else { return }
    roomLife?.opened(name)
    count(.roomMade)
    note("node \(process.node.slot) makes room \(name.text.string)")
    process.put(.call { $0.add([creation]) })
  }

  private func say(_ kind: RoomAct.Kind, in room: PartitionName, _ process: NodeProcess) {
    let act = RoomAct(kind: kind, room: room, key: process.node.key)
    count(.saidInRoom)
    note("node \(process.node.slot): \(kind) in \(room.text.string)")
    process.put(.call { engine in act.statement(engine.state).map { _ = engine.add([$0]) } })
  }

  private func write(_ process: NodeProcess, in room: PartitionName) {
    guard let id = drawForRooms({ $0.pick(plan.documents) }) else { return }
    nextJob += 1
    let edit = AuthoredEdit(id: id, seed: drawForRooms { $0.next() }, largestByteCount: nil)
    process.write(WriteJob(number: nextJob, partition: room, edits: [edit]))
  }
}
