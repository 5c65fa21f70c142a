/// A path of a document as it is shown, with what is below it.
package struct Shown: Hashable, Sendable {
  package enum Kind: Sendable { case absent, scalar, number, map, list, set }

  package struct Child: Hashable, Sendable {
    package let segment: PathSegment
    package let shown: Shown
  }

  package let kind: Kind
  /// `null` where absent.
  package let value: Value
  /// The value of the winning write: of a counter without its increments, of a container its marker.
  package let base: Value
  /// Of a container, by segment.
  package let children: [Child]
  /// A container that is shown only because something in it is (M8).
  package let isImplied: Bool
  /// The greatest among what is shown here.
  let stamp: WriteStamp

  package static let absent = Shown(.absent, .null, base: .null)

  init(
    _ kind: Kind, _ value: Value, base: Value, children: [Child] = [], isImplied: Bool = false,
    stamp: WriteStamp = .none
  ) {
    (self.kind, self.value, self.base, self.children) = (kind, value, base, children)
    (self.isImplied, self.stamp) = (isImplied, stamp)
  }

  /// The child at a segment, if it is shown.
  package subscript(segment: PathSegment) -> Shown? {
    var (low, high) = (0, children.count)
    while low < high {
      let middle = (low + high) / 2
      switch children[middle].segment.order(segment) {
      case .same: return children[middle].shown
      case .before: low = middle + 1
      case .after: high = middle
      }
    }
    return nil
  }

  /// What is shown at a path below; nil if nothing is.
  package subscript(path path: some Sequence<PathSegment>) -> Shown? {
    var node = self
    for segment in path {
      guard let child = node[segment] else { return nil }
      node = child
    }
    return node
  }
}
