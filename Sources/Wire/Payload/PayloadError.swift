/// Why a payload is malformed (rule M4), and where. Every node judges alike: a malformed change is refused outright.
package struct PayloadError: Error, Hashable, Sendable {
  package enum Reason: Hashable, Sendable {
    case encoding(CBORError.Kind)
    case tooLong(byteCount: Int, limit: Int)
    case documentCount(Int, limit: Int)
    case operationCount(limit: Int)
    case collectionLength(Int, limit: Int)
    case idType
    case idLength(limit: Int)
    /// Documents do not ascend, or one stands twice.
    case documentOrder
    case documentKind
    case generation
    /// An edit without operations, or a delete with some.
    case operations
    case operationKind
    /// Another number of fields than the kind of operation has.
    case operationShape
    /// A path that could be written shorter.
    case pathForm
    /// Empty, longer than 64 segments, not beginning with a key, or below `_id`.
    case path
    case positionLength(limit: Int)
    /// A list element that the change's author cannot have seen.
    case element
    /// A list element where the operation needs a key, or the reverse.
    case pathEnd
    /// `set` and `list-insert` carry no map but the empty one.
    case mapValue
    case increment
    case operationOrder
    case pathTwice
    /// An operation above another one that is no marker.
    case pathAbove
  }

  package let reason: Reason
  /// Index in the buffer that was read.
  package let offset: Int

  package init(_ reason: Reason, at offset: Int) { (self.reason, self.offset) = (reason, offset) }
  init(_ error: CBORError) { self.init(.encoding(error.kind), at: error.offset) }
}
