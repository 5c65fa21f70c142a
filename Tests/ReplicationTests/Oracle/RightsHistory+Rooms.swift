@testable import Replication

// What is said in rooms.
extension RightsHistory {
  mutating func found() {
    let device = pick(RightsHistory.devices)
    guard let by = membership(of: device) else { return }
    say(.room(Statement.Room(by: by)), by: device)
    for _ in 0..<(2 + random.below(3)) { speak(in: rooms[rooms.count - 1]) }
  }

  mutating func speakInRoom() {
    guard !rooms.isEmpty else { return found() }
    speak(in: pick(rooms))
  }

  /// Mostly of the device itself.
  mutating func membership(of device: String) -> Digest? {
    let all = memberships(of: random.chance(96) ? device : pick(RightsHistory.devices))
    return all.isEmpty ? nil : pick(all)
  }

  mutating func speak(in room: Text) {
    let creator = statements.first { $0.scope == room }.map { Named.name($0.issuer.bytes) }
    let device = random.chance(50) ? creator ?? "d0" : pick(RightsHistory.devices)
    guard let by = membership(of: device) else { return }
    let user = Text("u-" + pick(RightsHistory.devices))
    let known = statements.filter { $0.scope == room }.map(\.id)
    let seen = known.filter { _ in random.chance(30) }
    switch random.below(10) {
    case 0..<6: say(.invitation(Statement.Invitation(by: by, user: user, seen: seen)), by: device, in: room)
    case 6..<9:
      say(
        device, in: room,
        { history, more in history.listing(by: device, of: history.pick(RightsHistory.devices), more: more) },
        { .removal(Statement.Removal(by: by, user: user, seen: seen, listing: $0)) })
    default:
      let own = Text("u-" + device)
      say(.leave(Statement.Leave(by: by, user: own, seen: seen)), by: device, in: room)
    }
  }
}
