/// What later versions may add to a message, by number. An unknown one may be ignored below ``criticalKey``; from there on
/// the message must be refused.
package struct MessageExtensions: Hashable, Sendable {
  /// In ascending order of their keys.
  package var entries: [Entry]

  package struct Entry: Hashable, Sendable {
    package let key: UInt64
    package let content: [UInt8]
    package init(key: UInt64, content: [UInt8]) { (self.key, self.content) = (key, content) }
  }

  package static let criticalKey: UInt64 = 1 << 15
  package static let countLimit = 8
  /// Of all contents together.
  package static let byteLimit = 1_024

  package init(_ entries: [Entry] = []) { self.entries = entries }

  /// For what is signed: the number of them, then each with its length.
  func append(to out: inout [UInt8]) {
    appendBigEndian(UInt64(entries.count), to: &out)
    for entry in entries {
      appendBigEndian(entry.key, to: &out)
      appendCounted(entry.content, to: &out)
    }
  }
}
