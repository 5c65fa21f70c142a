#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A file's bytes in pieces that copies share until one of them writes there: copying a file costs next to nothing, and
/// a write costs what it writes.
struct ChunkedBytes {
  private typealias Chunk = ManagedBuffer<Void, UInt8>

  /// A page of the usual store, so that few writes touch more than two.
  private static let chunkByteCount = 4_096

  private(set) var count = 0
  /// Nil where nothing but zeros has been written.
  private var chunks: [Chunk?] = []

  init() {}

  init(_ bytes: [UInt8]) { bytes.withUnsafeBytes { write($0, at: 0) } }

  var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = read(UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
  }

  /// Fills `out` from `offset` on as far as there are bytes, and answers how many that were.
  func read(_ out: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
    let available = max(0, min(out.count, count - offset))
    guard available > 0, let start = out.baseAddress else { return 0 }
    ChunkedBytes.walk(offset..<offset + available) { index, inside, done, length in
      guard let chunk = chunks[index] else {
        memset(start + done, 0, length)
        return
      }
      chunk.withUnsafeMutablePointerToElements { _ = memcpy(start + done, $0 + inside, length) }
    }
    return available
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
    resize(to: max(count, offset + bytes.count))
    ChunkedBytes.walk(offset..<offset + bytes.count) { index, inside, done, length in
      own(index, keeping: length < ChunkedBytes.chunkByteCount)
      chunks[index]?.withUnsafeMutablePointerToElements { _ = memcpy($0 + inside, start + done, length) }
    }
  }

  /// Cuts off, or adds zeros.
  mutating func resize(to size: Int) {
    let wanted = (size + ChunkedBytes.chunkByteCount - 1) / ChunkedBytes.chunkByteCount
    if wanted > chunks.count {
      chunks.append(contentsOf: repeatElement(nil, count: wanted - chunks.count))
    } else if wanted < chunks.count {
      chunks.removeLast(chunks.count - wanted)
    }
    let inside = size % ChunkedBytes.chunkByteCount
    // What lies behind the end would show again if the file grew.
    if size < count, inside > 0, let last = chunks.indices.last, chunks[last] != nil {
      own(last, keeping: true)
      chunks[last]?.withUnsafeMutablePointerToElements {
        _ = memset($0 + inside, 0, ChunkedBytes.chunkByteCount - inside)
      }
    }
    count = size
  }

  /// Takes the pieces that `range` touches from `other`, which is as long, without copying them.
  mutating func share(_ range: Range<Int>, of other: ChunkedBytes) {
    ChunkedBytes.walk(range.clamped(to: 0..<min(count, other.count))) { index, _, _, _ in
      chunks[index] = other.chunks[index]
    }
  }

  /// Makes a piece this file's alone. `keeping`: with its bytes, since not all of them will be written.
  private mutating func own(_ index: Int, keeping: Bool) {
    if isKnownUniquelyReferenced(&chunks[index]) { return }
    let made = Chunk.create(minimumCapacity: ChunkedBytes.chunkByteCount) { _ in () }
    if keeping {
      made.withUnsafeMutablePointerToElements { new in
        guard let old = chunks[index] else {
          memset(new, 0, ChunkedBytes.chunkByteCount)
          return
        }
        old.withUnsafeMutablePointerToElements { _ = memcpy(new, $0, ChunkedBytes.chunkByteCount) }
      }
    }
    chunks[index] = made
  }

  /// Visits the pieces of a range: which one, where inside it, how far into the range, how many bytes.
  @inline(__always)
  private static func walk(_ range: Range<Int>, _ visit: (Int, Int, Int, Int) -> Void) {
    var place = range.lowerBound
    while place < range.upperBound {
      let inside = place % chunkByteCount
      let length = min(chunkByteCount - inside, range.upperBound - place)
      visit(place / chunkByteCount, inside, place - range.lowerBound, length)
      place += length
    }
  }
}
