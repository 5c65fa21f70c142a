import Engine
import Replication

/// A place in the simulated world: a device, its directory, its clock, and the process that runs there, if any.
final class SimulatedNode {
  let slot: Int
  let key: FakeKey
  /// Whom the device acts for.
  let user: Text
  var directory: NodeDirectory
  var process: NodeProcess?
  var join: JoinClient?
  /// What it asks to be admitted with.
  var invitation: GivenInvitation?
  /// Counts processes, so that events for an earlier one are told apart.
  var life = 0
  /// Counts the times that its store was replaced by something older.
  var lineage = 0
  var clockOffset: Int64 = 0
  var link = LinkState()
  /// Until then the disk takes nothing.
  var diskFullUntil: UInt64 = 0
  var slowDiskUntil: UInt64 = 0
  /// Copies of the directory at earlier times, to come back.
  var copies: [NodeDirectory] = []
  /// It is meant to run: a crashed one comes back.
  var isMember = false
  /// An admin was asked to end the device.
  var isEndAsked = false
  /// What it says is spoiled on the way; nothing is asked of it.
  var liar: Liar?
  /// Its people begin partitions without end.
  var isFlooder = false
  /// Its key signs without end, and its engine keeps and tells all of it.
  var flood: Flood?
  /// It knows less than the others for now (``BuildMix``), and makes less of what it has.
  var isEarlierBuild = false

  /// It keeps to the rules, whatever its people do.
  var isHonest: Bool { liar == nil && flood == nil }

  /// It has to come to what the naive rules make of what it holds.
  var isJudged: Bool { isHonest && !isEarlierBuild }

  init(slot: Int, key: FakeKey, user: Text, _ directory: NodeDirectory) {
    (self.slot, self.key, self.user, self.directory) = (slot, key, user, directory)
  }

  var address: SocketAddress { SocketAddress(.ipv4(0x0a00_0000 + UInt32(slot) + 1), port: World.port) }

  func start(in world: World) {
    life += 1
    do {
      let process = try NodeProcess(self, in: world, life: life)
      self.process = process
      if let shore = world.shore, shore.relays.contains(slot) { process.relay = RelayProcess(process, shore) }
      if !process.engine.state.moved.isEmpty { world.count(.movedByUpgrade) }
      world.oracle.opened(process)
      world.announce(self)
      world.planTurn(process, at: world.clock + 1)
    } catch {
      world.violate("I15", "node \(slot) does not start: \(error)")
    }
  }
}
