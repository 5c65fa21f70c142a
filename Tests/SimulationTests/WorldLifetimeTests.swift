import Testing

@testable import Simulation

@Suite("A world leaves nothing behind") struct WorldLifetimeTests {
  private struct Weak {
    weak var part: AnyObject?
    init(_ part: AnyObject) { self.part = part }
  }

  /// What a world that has run consists of, and nothing that holds it.
  private func parts(usesDisk: Bool) -> [Weak] {
    var options = SimulationOptions()
    (options.nodes, options.troubledMilliseconds, options.usesDisk) = (3...3, 4_000, usesDisk)
    options.faults = [.crash, .crashInCommit, .cut, .diskFailed, .clonedDirectory]
    let world = World(seed: 1, options)
    _ = world.run()
    let processes = world.nodes.compactMap(\.process)
    #expect(processes.count >= 3)
    let disks = world.nodes.compactMap { node in
      if case .disk(let disk) = node.directory.medium { Weak(disk) } else { nil }
    }
    #expect(disks.isEmpty != usesDisk)
    return [Weak(world), Weak(world.oracle)] + world.nodes.map { Weak($0) } + processes.map { Weak($0) }
      + processes.map { Weak($0.engine) } + processes.map { Weak($0.store.base) } + disks
  }

  @Test("nodes, their processes, engines, stores and disks go with it", arguments: [true, false])
  func goes(usesDisk: Bool) {
    let left = parts(usesDisk: usesDisk).compactMap(\.part).map { "\(type(of: $0))" }
    #expect(left == [])
  }
}
