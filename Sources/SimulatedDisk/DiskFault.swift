/// What goes wrong at one operation of a disk, or from it on.
package enum DiskFault: String, CaseIterable, Sendable {
  /// The operation fails with EIO, once. A sync that fails has lost what it should have written, as Linux does it.
  case inputOutput
  /// From this operation on, each one that needs space fails for lack of it, until ``SimulatedDisk/heal()``.
  case full
  /// As `full`, with EROFS; and files open for reading alone.
  case readOnly
  /// The power goes before the operation: it and everything later fails.
  case crash
}

/// What is left of writes, new names and deletions that had not been synced when the power went.
package enum PowerLoss: Hashable, Sendable {
  /// They are gone; deleted files are back.
  case lost
  /// The disk had just written them.
  case kept
  /// Each 512-byte sector and each name by chance, in no order.
  case torn(seed: UInt64)
}

/// How a machine comes back.
package enum Restart: Hashable, Sendable {
  /// Only the process ended. The system's cache has everything, and may still lose it with the power.
  case cached
  case powerLoss(PowerLoss)

  package static let lost = Restart.powerLoss(.lost)
  package static let kept = Restart.powerLoss(.kept)
  package static func torn(seed: UInt64) -> Restart { .powerLoss(.torn(seed: seed)) }
}

/// What has been asked of a disk. Reads aside, each of them changes something and is one of the operations that faults
/// count.
package struct DiskOperations: Hashable, Sendable {
  package enum Kind: Int, CaseIterable, Sendable { case read, make, write, truncate, sync, delete, rename, map }

  private var counts = [Int](repeating: 0, count: Kind.allCases.count)
  package internal(set) var bytesRead = 0
  package internal(set) var bytesWritten = 0

  package internal(set) subscript(kind: Kind) -> Int {
    get { counts[kind.rawValue] }
    set { counts[kind.rawValue] = newValue }
  }

  /// All but reads.
  package internal(set) var changes = 0
}

/// A generator of the disk's own (SplitMix64), so that the same seed tears the same sectors everywhere.
struct DiskRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }
}
