/// What an invitation is proved with. Never shown where it is printed, logged or dumped (fault X16).
package struct InvitationSecret: Hashable, Sendable {
  package let bytes: [UInt8]

  package static let byteCount = 32

  /// Nil unless there are exactly 32 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == InvitationSecret.byteCount else { return nil }
    self.bytes = Array(bytes)
  }
}

extension InvitationSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<InvitationSecret, redacted>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
