import CSQLite

/// The index of a write-ahead log, which the connections of one file share, and its eight locks. It ends with the last
/// connection: the next one builds it anew from the log.
struct SharedIndex {
  /// Of one connection: a bit for each lock that it holds.
  struct Held {
    fileprivate(set) var isMapped = false
    fileprivate var shared: UInt16 = 0
    fileprivate var exclusive: UInt16 = 0
  }

  private var regions: [UnsafeMutableRawPointer] = []
  private var connections = 0
  private var readers = [Int](repeating: 0, count: Int(SQLITE_SHM_NLOCK))
  private var exclusive: UInt16 = 0

  func hasRegion(_ index: Int) -> Bool { index < regions.count }

  /// Nil where there is no such region and none is to be made.
  mutating func region(_ index: Int, byteCount: Int, makes: Bool, for held: inout Held) -> UnsafeMutableRawPointer? {
    if !held.isMapped {
      held.isMapped = true
      connections += 1
    }
    while regions.count <= index {
      guard makes else { return nil }
      let region = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
      region.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
      regions.append(region)
    }
    return regions[index]
  }

  mutating func unmap(_ held: inout Held) {
    guard held.isMapped else { return }
    unlock(.max, of: &held)
    held.isMapped = false
    connections -= 1
    guard connections == 0 else { return }
    for region in regions { region.deallocate() }
    regions = []
  }

  /// `flags` as SQLite gives them: lock or unlock, shared or exclusive.
  mutating func change(_ first: Int32, _ count: Int32, _ flags: Int32, for held: inout Held) -> Int32 {
    let bits = UInt16(truncatingIfNeeded: (1 << (first + count)) - (1 << first))
    if flags & SQLITE_SHM_UNLOCK != 0 {
      unlock(bits, of: &held)
      return SQLITE_OK
    }
    guard exclusive & bits & ~held.exclusive == 0 else { return SQLITE_BUSY }
    if flags & SQLITE_SHM_SHARED != 0 {
      for slot in slots(bits & ~held.shared) { readers[slot] += 1 }
      held.shared |= bits
      return SQLITE_OK
    }
    for slot in slots(bits) where readers[slot] > (held.shared & 1 << UInt16(slot) == 0 ? 0 : 1) { return SQLITE_BUSY }
    exclusive |= bits
    held.exclusive |= bits
    return SQLITE_OK
  }

  private mutating func unlock(_ bits: UInt16, of held: inout Held) {
    for slot in slots(bits & held.shared) { readers[slot] -= 1 }
    exclusive &= ~(bits & held.exclusive)
    held.shared &= ~bits
    held.exclusive &= ~bits
  }

  private func slots(_ bits: UInt16) -> some Sequence<Int> {
    readers.indices.lazy.filter { bits & 1 << UInt16($0) != 0 }
  }
}
