import CLinux

enum Heap {
  /// Bytes that this thread has asked for and not given back, where it is the main one.
  static var bytes: Int {
    let heap = mallinfo2()
    return Int(heap.uordblks) + Int(heap.hblkhd)
  }
}
