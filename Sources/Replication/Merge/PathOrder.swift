/// The order of paths: that of their canonical bytes (M2), found without building them.
///
/// Segment by segment gives the same order as the bytes, because escaping closes every segment with a byte that sorts
/// before all content: keys come first, then elements, then members, and a path comes before everything below it.
enum PathOrder: Equatable {
  case before, same, after
}

extension PathSegment {
  package var isKey: Bool {
    if case .key = self { true } else { false }
  }

  func order(_ other: PathSegment) -> PathOrder {
    switch (self, other) {
    case (.key(let a), .key(let b)): a.order(b)
    case (.element(let a), .element(let b)): a.order(b)
    case (.member(let a), .member(let b)): bytesOrder(a, b)
    case (.key, _), (.element, .member): .before
    case (.element, .key), (.member, _): .after
    }
  }
}

extension ListElement {
  func order(_ other: ListElement) -> PathOrder {
    guard position.count == other.position.count else { return bytesOrder(key, other.key) }
    let positions = bytesOrder(position, other.position)
    guard positions == .same else { return positions }
    return dot == other.dot ? .same : dot < other.dot ? .before : .after
  }
}

extension Text {
  func order(_ other: Text) -> PathOrder {
    let fast = utf8.withContiguousStorageIfAvailable { a in
      other.utf8.withContiguousStorageIfAvailable { b in bytesOrder(a, b) }
    }
    return (fast ?? nil) ?? (self == other ? .same : self < other ? .before : .after)
  }
}

extension [PathSegment] {
  /// How the first `count` segments stand to the whole of `other`.
  func order(upTo count: Int, _ other: [PathSegment]) -> PathOrder {
    for index in 0..<Swift.min(count, other.count) {
      let order = self[index].order(other[index])
      if order != .same { return order }
    }
    return count == other.count ? .same : count < other.count ? .before : .after
  }

  func order(_ other: [PathSegment]) -> PathOrder { order(upTo: count, other) }

  /// Whether `other` stands strictly below this path.
  func isAbove(_ other: [PathSegment]) -> Bool {
    // From the end: paths that share a parent differ there.
    count < other.count && indices.reversed().allSatisfy { self[$0].order(other[$0]) == .same }
  }
}

func bytesOrder<Bytes: RandomAccessCollection<UInt8>>(_ a: Bytes, _ b: Bytes) -> PathOrder where Bytes.Index == Int {
  let shared = min(a.count, b.count)
  for offset in 0..<shared {
    let (x, y) = (a[a.startIndex + offset], b[b.startIndex + offset])
    if x != y { return x < y ? .before : .after }
  }
  return a.count == b.count ? .same : a.count < b.count ? .before : .after
}
