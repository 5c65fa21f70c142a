import CLinux
import Glibc
import Testing

@testable import SeameshCommand

@Suite struct HeapReserveTests {
  /// How many of so many blocks of a size are no part of a heap, more or less: other threads have theirs, and what is free in a
  /// heap is used first. None of them is written to.
  private func apart(of count: Int, _ byteCount: Int) -> Int {
    let before = Int(mallinfo2().hblks)
    let blocks = (0..<count).map { _ in malloc(byteCount) }
    defer { for block in blocks { free(block) } }
    return Int(mallinfo2().hblks) - before
  }

  @Test("a large table goes back to the kernel when it is freed, and a message's memory stays with its heap")
  func largeBlocks() {
    HeapReserve.keep()
    let large = HeapReserve.largeByteCount
    #expect(apart(of: 512, large) > 256)
    #expect(apart(of: 512, large / 2) < 32)
  }
}
