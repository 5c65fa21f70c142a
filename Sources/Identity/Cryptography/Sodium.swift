import CSodium

/// libsodium, made ready once per process.
enum Sodium {
  private static let initialised: Bool = sodium_init() >= 0

  /// Every entry point that needs randomness or chosen CPU features calls this first.
  static func prepare() {
    precondition(initialised, "libsodium could not be initialised: the system gives no randomness")
  }
}

/// Where random bytes come from; tests hand in a repeatable source.
package typealias RandomSource = (_ count: Int) -> [UInt8]

package enum SecureRandom {
  /// Bytes from the operating system's generator by way of libsodium.
  package static func bytes(_ count: Int) -> [UInt8] {
    Sodium.prepare()
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      if let start = buffer.baseAddress { randombytes_buf(start, count) }
      filled = count
    }
  }
}
