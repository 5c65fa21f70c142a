import Replication

/// Bounds of what a seed may draw.
package struct SimulationOptions: Sendable {
  /// Nil: the seed draws, in one world of a hundred more than have links with one another.
  package var nodes: ClosedRange<Int>?
  package var partitions: ClosedRange<Int> = 1...3
  /// Nil: a subset that the seed draws.
  package var faults: Set<Fault>?
  /// How long people write and faults happen, in milliseconds of virtual time.
  package var troubledMilliseconds: UInt64 = 25_000
  /// Whether nodes have the shipped store on a simulated disk or its fast stand-in; nil: the seed draws, half and half.
  package var usesDisk: Bool?
  /// Whether people make rooms and talk in them; nil: the seed draws.
  package var hasRooms: Bool?
  /// Whether nodes forward to a model of a backend, which takes the shipped store; nil: the seed draws.
  package var hasRelays: Bool?
  /// Of a hundred commits so many are judged by the naive rules at once; all are at the end.
  package var judgedPercent = 4
  /// One member begins partitions without end, in every world with more than two nodes.
  package var isFlooded = false
  /// Whether one member signs statements, replica ids and chains without end, in worlds with more than two nodes; nil: the
  /// seed draws.
  package var floods: Bool?
  /// Nil: all nodes run the same build.
  package var builds: BuildMix?
  /// A mistake that every honest node has.
  package var plantedBug: PlantedBug?
  /// Keeps the last events as text.
  package var keepsLog = false

  /// So many as can all be linked with one another, and more.
  package static let harbour = DialPolicy.Limits.linksOfAll + 1...DialPolicy.Limits.linksAtMost + 7

  package init() {}
}

/// Two builds in one fleet: the last node runs the earlier one until the faults are over, and comes up under the later
/// one then, as all others have been from the start.
package struct BuildMix: Sendable {
  package var earlier: KnownFormats
  package var later: KnownFormats

  package init(earlier: KnownFormats, later: KnownFormats) { (self.earlier, self.later) = (earlier, later) }
}
