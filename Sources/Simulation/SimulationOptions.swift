/// Bounds of what a seed may draw.
package struct SimulationOptions: Sendable {
  package var nodes: ClosedRange<Int> = 2...6
  package var partitions: ClosedRange<Int> = 1...3
  /// Nil: a subset that the seed draws.
  package var faults: Set<Fault>?
  /// How long people write and faults happen, in milliseconds of virtual time.
  package var troubledMilliseconds: UInt64 = 25_000
  /// A mistake put into the shell, for tests of the checks.
  package var plantedBug: PlantedBug?
  /// Keeps the last events as text.
  package var keepsLog = false

  package init() {}
}
