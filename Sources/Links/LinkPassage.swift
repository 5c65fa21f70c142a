import Replication

/// What may pass over a link now.
package enum LinkPassage: Hashable, Sendable {
  case everything
  /// Authority, and changes of the partitions that one of these names, in this order.
  case partitions([Text])
  case authority
  case nothing
}

/// What may pass, and how much may be under way.
package struct LinkAllowance: Hashable, Sendable {
  package let passage: LinkPassage
  /// Somebody pays for what is under way, or what comes up next must not wait long behind it.
  package let isThin: Bool

  package static let free = LinkAllowance(.everything, isThin: false)

  package init(_ passage: LinkPassage, isThin: Bool) { (self.passage, self.isThin) = (passage, isThin) }
}
