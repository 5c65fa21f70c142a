import TestSupport

/// Damaged copies of one record: every way in which a flipped bit, a lost or doubled byte may reach a decoder.
struct Mutations {
  let original: [UInt8]

  /// The record cut off before its end, at every byte.
  var truncations: [ArraySlice<UInt8>] { original.indices.map { original[..<$0] } }

  func random(_ generator: inout SplitMix64) -> [UInt8] {
    var bytes = original
    for _ in 0...generator.below(3) where !bytes.isEmpty {
      let place = generator.below(bytes.count)
      switch generator.below(5) {
      case 0: bytes[place] ^= 1 << UInt8(generator.below(8))
      case 1: bytes[place] = UInt8.random(in: 0...255, using: &generator)
      case 2: bytes.remove(at: place)
      case 3: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: place)
      default: bytes.swapAt(place, generator.below(bytes.count))
      }
    }
    return bytes
  }
}
