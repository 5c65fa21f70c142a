import Synchronization

/// What must hold within, looked at where it is made (ARCHITECTURE, "What is asserted").
///
/// Looked at in debug builds and in the simulator, where what is looked at may cost as much as what is done. In a release
/// build a look costs one relaxed read. What would be worse to go on with than to stop is a `precondition` instead, and
/// stands in every build.
package enum Invariant {
  /// Hears what does not hold, and lets the caller go on. Otherwise the process stops.
  @TaskLocal package static var witness: InvariantWitness?

  #if DEBUG
    private static let isOn = Atomic<Bool>(true)
  #else
    private static let isOn = Atomic<Bool>(false)
  #endif

  /// From now on, in this process.
  package static func lookAtAll() { isOn.store(true, ordering: .relaxed) }

  package static var isLookedAt: Bool { isOn.load(ordering: .relaxed) }

  /// With more of them, or of chains in one, what costs as much as they are many is not looked at.
  package static let few = 64

  @inline(__always)
  package static func check(_ holds: @autoclosure () -> Bool, _ what: @autoclosure () -> String) {
    if isLookedAt, !holds() { fail(what()) }
  }

  @inline(never)
  private static func fail(_ what: String) {
    guard let witness else { preconditionFailure(what) }
    witness.hears(what)
  }
}

/// A class: `withValue` of a task-local closure crashes in an optimised build (Swift 6.3.1 on Linux).
package final class InvariantWitness: Sendable {
  fileprivate let hears: @Sendable (String) -> Void

  package init(hears: @escaping @Sendable (String) -> Void) { self.hears = hears }
}
