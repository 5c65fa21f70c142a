/// What conforms never shows its content when it is printed, logged, dumped or put into a string (fault X16).
///
/// One description for all, on purpose: even a length or a fingerprint helps whoever collects logs.
package protocol Redacted: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
  package var description: String { "<\(Self.self), redacted>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
