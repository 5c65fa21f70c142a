import Engine
import Replication
import Testing

@testable import Simulation

@Suite("The onlooker knows when all is quiet") struct AgreementTests {
  private let world: World

  init() throws {
    var options = SimulationOptions()
    (options.nodes, options.faults, options.troubledMilliseconds, options.usesDisk) = (2...2, [], 1_000, false)
    world = World(seed: 1, options)
    try #require(world.run().violations.isEmpty)
    try #require(world.oracle.agreement.disagreement() == nil && world.oracle.agreement.areAllConnected())
  }

  @Test("while one has heard a statement that the other has not, they do not agree")
  func statements() throws {
    let process = try #require(world.nodes[0].process)
    let register = try #require(world.fleet.registers.first)
    let stated = world.fleet.grant(.read, register, ends: [])
    let said = try #require(stated)
    process.put(.call { $0.add(said) })
    process.turn()
    #expect(world.oracle.agreement.disagreement() == "nodes 0 and 1 hold different statements")
  }

  @Test("a copy of a device that nobody has a session with is not connected, though its peers know the device")
  func copies() throws {
    let original = world.nodes[1]
    let copy = SimulatedNode(slot: 2, key: original.key, user: original.user, original.directory.copy())
    copy.isMember = true
    world.nodes.append(copy)
    world.dialTargets = [[1, 2], [0], [0]]
    copy.start(in: world)
    #expect(!world.oracle.agreement.areAllConnected())
  }
}
