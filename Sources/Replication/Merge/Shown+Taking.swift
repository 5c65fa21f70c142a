extension Shown {
  /// The document as it is to be where conflicts are taken, one after the other; nil where one cannot be: an increment of what
  /// is no whole number.
  package func taking(_ conflicts: [Conflict]) -> Shown? {
    var result = self
    for conflict in conflicts {
      var value = conflict.value
      if conflict.kind == .increment {
        guard let sum = result[path: conflict.path].map(\.value).adding(conflict.value) else { return nil }
        value = sum
      }
      result = result.setting(conflict.path[...], to: value)
    }
    return result
  }

  /// With another value at a path, nil: with nothing there. Containers that lack on the way are made, and what is no container
  /// makes way for them.
  package func setting(_ path: ArraySlice<PathSegment>, to value: Value?) -> Shown {
    guard let segment = path.first else { return value.map { Shown(.scalar, $0, base: $0) } ?? .absent }
    var children = kind == segment.container ? self.children : []
    let place = children.firstIndex { $0.segment.order(segment) != .before } ?? children.count
    let isThere = place < children.count && children[place].segment.order(segment) == .same
    guard value != nil || isThere else { return self }
    let child = (isThere ? children[place].shown : .absent).setting(path.dropFirst(), to: value)
    children.replaceSubrange(
      place..<place + (isThere ? 1 : 0), with: child.kind == .absent ? [] : [Child(segment: segment, shown: child)])
    return Shown(segment.container, children: children)
  }

  private init(_ container: Kind, children: [Child]) {
    if container == .map {
      let entries = children.compactMap { child -> ValueMap.Entry? in
        guard case .key(let key) = child.segment else { return nil }
        return ValueMap.Entry(key: key, value: child.shown.value)
      }
      self.init(.map, .map(ValueMap(ascending: entries)), base: .map(ValueMap()), children: children)
    } else {
      self.init(container, .array(children.map(\.shown.value)), base: .array([]), children: children)
    }
  }
}

extension PathSegment {
  /// What it is a step into.
  fileprivate var container: Shown.Kind {
    switch self {
    case .key: .map
    case .element: .list
    case .member: .set
    }
  }
}

extension Value? {
  fileprivate func adding(_ amount: Value?) -> Value? {
    guard case .int(let amount)? = amount else { return nil }
    return switch self {
    case nil: .int(amount)
    case .int(let number)?: .int(number &+ amount)
    default: nil
    }
  }
}
