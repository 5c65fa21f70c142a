import Replication

/// FIPS 180-4, plainly: the codec is tested without the library that the node hashes with.
func sha256(_ input: UnsafeRawBufferPointer) -> Digest {
  var message = Array(input)
  message.append(0x80)
  message.append(contentsOf: [UInt8](repeating: 0, count: (120 - message.count % 64) % 64))
  appendBigEndian(UInt64(input.count) * 8, to: &message)
  var state = SHA256Constants.initial
  for block in stride(from: 0, to: message.count, by: 64) { compress(&state, message[block..<block + 64]) }
  var bytes: [UInt8] = []
  for word in state { appendBigEndian(word, to: &bytes) }
  return Digest(bytes) ?? .zero
}

private func compress(_ state: inout [UInt32], _ block: ArraySlice<UInt8>) {
  var words = [UInt32](repeating: 0, count: 64)
  for (index, byte) in block.enumerated() { words[index / 4] = words[index / 4] << 8 | UInt32(byte) }
  for i in 16..<64 {
    let (a, b) = (words[i - 15], words[i - 2])
    let low = rotated(a, 7) ^ rotated(a, 18) ^ a >> 3
    let high = rotated(b, 17) ^ rotated(b, 19) ^ b >> 10
    words[i] = words[i - 16] &+ low &+ words[i - 7] &+ high
  }
  var v = state
  for i in 0..<64 {
    let first = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25)
    let choice = (v[4] & v[5]) ^ (~v[4] & v[6])
    let one = v[7] &+ first &+ choice &+ SHA256Constants.rounds[i] &+ words[i]
    let second = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22)
    let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])
    v = [one &+ second &+ majority, v[0], v[1], v[2], v[3] &+ one, v[4], v[5], v[6]]
  }
  for i in 0..<8 { state[i] = state[i] &+ v[i] }
}

private func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }

/// The first 32 bits of the fractional parts of the square and cube roots of the first primes.
private enum SHA256Constants {
  static let initial: [UInt32] = primes.prefix(8).map { fraction(Double($0).squareRoot()) }
  static let rounds: [UInt32] = primes.map { fraction(cubeRoot($0)) }

  private static let primes: [UInt64] = (2...311).filter { n in !(2..<n).contains { n % $0 == 0 } }.map { UInt64($0) }

  private static func fraction(_ root: Double) -> UInt32 {
    UInt32((root - root.rounded(.down)) * 4_294_967_296)
  }

  /// Newton's steps from above: 52 bits hold the 3 of the whole part and the 32 that are needed.
  private static func cubeRoot(_ n: UInt64) -> Double {
    var root = Double(n)
    for _ in 0..<200 { root -= (root * root * root - Double(n)) / (3 * root * root) }
    return root
  }
}

/// HMAC-SHA-256 (RFC 2104) for keys of at most a block, as all here are.
func hmac(_ key: [UInt8], _ message: [UInt8]) -> Digest {
  let block = key + [UInt8](repeating: 0, count: 64 - key.count)
  let inner = Digest.of(block.map { $0 ^ 0x36 } + message, sha256)
  return Digest.of(block.map { $0 ^ 0x5c } + inner.bytes, sha256)
}
