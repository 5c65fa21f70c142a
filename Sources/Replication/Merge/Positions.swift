/// Where new list elements stand (M13).
///
/// Positions are dense byte strings, in the manner of Logoot (Weiss, Urso, Molli 2009), but a new one lies between its
/// neighbours' whole keys, so that equal positions of concurrent inserts leave room between them as well.
enum Positions {
  /// A new position is drawn where at least this many lie between the neighbours …
  private static let room = 1 << 16
  /// … and this close to the older neighbour, so that typing on in one direction lengthens positions rarely.
  private static let step = 1 << 10

  /// A short `z` with `low < z·anything < high`.
  ///
  /// - Parameters:
  ///   - low: key of the element before, nil at the start.
  ///   - high: key of the element behind, nil at the end; greater than `low`.
  static func place(
    between low: [UInt8]?, and high: [UInt8]?, random: inout some RandomNumberGenerator
  ) -> [UInt8] {
    precondition(precedes(low, high), "list neighbours out of order")
    var (depth, gap) = (0, high == nil ? 1 : 0)
    // `gap` is the difference of the neighbours' first `depth` bytes as numbers: below `room` before each step.
    repeat {
      gap = gap * 256 + digit(high, depth) - digit(low, depth)
      depth += 1
    } while gap - 1 < room
    let near = low == nil && high == nil ? gap - 1 : min(gap - 1, step)
    let offset = Int.random(in: 1...near, using: &random)
    guard let high, low.map({ $0.count < high.count }) ?? true else {
      return adding(offset, to: low ?? [], depth: depth)
    }
    return adding(-offset, to: high, depth: depth)
  }

  /// Positions for `count` elements in a row. They share one place, so that one write's run stays together.
  static func places(
    between low: [UInt8]?, and high: [UInt8]?, count: Int, random: inout some RandomNumberGenerator
  ) -> [[UInt8]] {
    let place = place(between: low, and: high, random: &random)
    guard count > 1 else { return [place] }
    let stride = 65_536 / (count + 1)
    return (1...count).map { index in
      var position = place
      appendBigEndian(UInt16(truncatingIfNeeded: index * stride), to: &position)
      return position
    }
  }

  private static func precedes(_ low: [UInt8]?, _ high: [UInt8]?) -> Bool {
    guard let low, let high else { return true }
    return low.lexicographicallyPrecedes(high)
  }

  private static func digit(_ key: [UInt8]?, _ index: Int) -> Int {
    if let key, index < key.count { Int(key[index]) } else { 0 }
  }

  /// The first `depth` bytes of a key as a number, plus `offset`.
  private static func adding(_ offset: Int, to key: [UInt8], depth: Int) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: depth)
    var carry = offset
    for index in result.indices.reversed() {
      carry += digit(key, index)
      result[index] = UInt8(truncatingIfNeeded: carry)
      carry >>= 8
    }
    return result
  }
}
