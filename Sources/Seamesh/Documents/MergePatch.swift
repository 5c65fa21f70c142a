import Replication

/// JSON Merge Patch, RFC 7396.
package enum MergePatch {
  package static func apply(_ patch: ValueMap, to target: ValueMap) -> ValueMap {
    var entries: [ValueMap.Entry] = []
    // Both are in the order of their keys.
    var rest = target.entries[...]
    for change in patch.entries {
      let before = rest.prefix { $0.key < change.key }
      entries += before
      rest = rest.dropFirst(before.count)
      var present: Value?
      if let first = rest.first, first.key == change.key {
        present = first.value
        rest = rest.dropFirst()
      }
      if change.value != .null {
        entries.append(ValueMap.Entry(key: change.key, value: apply(change.value, to: present)))
      }
    }
    return ValueMap(ascending: entries + rest)
  }

  /// `target` is nil where there is nothing yet.
  package static func apply(_ patch: Value, to target: Value?) -> Value {
    guard case .map(let patch) = patch else { return patch }
    guard case .map(let target) = target else { return .map(apply(patch, to: ValueMap())) }
    return .map(apply(patch, to: target))
  }
}
