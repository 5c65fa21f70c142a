import Replication

// Relays, and the backend that they forward to.
extension World {
  /// All that was asked for ashore is done within so long when all is quiet.
  private static let shoreMilliseconds: UInt64 = 90_000
  /// And so much for each run that relays have: some worlds give them pages of one run and one document.
  private static let shoreMillisecondsOfRun: UInt64 = 150

  /// When all agree, the office asks once more, and the backend comes to have all that its relays hold. False where it does.
  func isBusyAshore() -> Bool {
    guard let shore else { return false }
    guard let since = shore.closedSince else {
      (agreedSince, quietSince, isPrompt) = (nil, clock, false)
      shore.close()
      return true
    }
    let seen = shore.isPutBackUnseen ? oracle.shore.lackBehindReadings() : oracle.shore.difference()
    guard let difference = seen else {
      guard shore.isPutBackUnseen else { return false }
      agreedSince = nil
      shore.reconnect()
      return true
    }
    agreedSince = nil
    note("ashore: \(difference)")
    let limit = World.shoreMilliseconds + World.shoreMillisecondsOfRun * UInt64(shore.relayed.count)
    if clock > since + limit { violate("I9", "when all has long been quiet: \(difference)") }
    return true
  }

  /// A relay's node has a change of the office, whenever that came home.
  func officeWrote() {
    count(.officeWritten)
    if !isTroubled { (agreedSince, quietSince, isPrompt) = (nil, clock, false) }
  }
}

extension Shore {
  func noteStored(_ run: KnownRun, at node: SimulatedNode) {
    guard relays.contains(node.slot) else { return }
    relayed.insert(run.number)
    edits.note(run, at: node.slot, world.clock)
  }
}
