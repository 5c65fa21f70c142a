import Synchronization

/// Whether a thread works or rests, and at which of its steps it is: for who watches that it comes back.
package final class ThreadBeat: Sendable {
  package let name: String
  /// Odd while the thread works. It alone writes.
  private let count = Atomic<UInt64>(0)

  package init(_ name: String) { self.name = name }

  /// A step begins, whether or not one came right before it.
  package func works() {
    let now = count.load(ordering: .relaxed)
    count.store(now &+ (now.isMultiple(of: 2) ? 1 : 2), ordering: .relaxed)
  }

  /// The thread waits for something to do.
  package func rests() {
    let now = count.load(ordering: .relaxed)
    if !now.isMultiple(of: 2) { count.store(now &+ 1, ordering: .relaxed) }
  }

  /// The number of the running step; nil at rest.
  package var step: UInt64? {
    let now = count.load(ordering: .relaxed)
    return now.isMultiple(of: 2) ? nil : now
  }
}
