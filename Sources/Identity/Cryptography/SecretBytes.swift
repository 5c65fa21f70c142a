import CSodium

/// Secret bytes that are wiped from memory with their last reference, and compared in constant time.
///
/// `@unchecked Sendable`: the memory is written in `init` alone, and only read until `deinit`.
package final class SecretBytes: Redacted, @unchecked Sendable {
  private let storage: UnsafeMutableRawBufferPointer

  package init(_ bytes: some Collection<UInt8>) {
    storage = .allocate(byteCount: bytes.count, alignment: 16)
    storage.copyBytes(from: bytes)
  }

  deinit {
    if let start = storage.baseAddress { sodium_memzero(start, storage.count) }
    storage.deallocate()
  }

  package var count: Int { storage.count }

  package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(storage))
  }

  /// A copy that nobody wipes: for files and for the wire, not for keeping.
  package func copy() -> [UInt8] { Array(storage) }
}

extension SecretBytes: Equatable {
  package static func == (a: SecretBytes, b: SecretBytes) -> Bool {
    a.withBytes { a in b.withBytes { b in isEqualInConstantTime(a, b) } }
  }
}

/// Takes the same time wherever the bytes differ; the lengths are no secret.
package func isEqualInConstantTime(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
  guard a.count == b.count else { return false }
  guard let first = a.baseAddress, let second = b.baseAddress else { return true }
  return sodium_memcmp(first, second, a.count) == 0
}

package func isEqualInConstantTime(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  a.withUnsafeBytes { a in b.withUnsafeBytes { b in isEqualInConstantTime(a, b) } }
}
