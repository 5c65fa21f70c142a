import Replication

/// JSON Merge Patch, RFC 7396.
package enum MergePatch {
  package static func apply(_ patch: ValueMap, to target: ValueMap) -> ValueMap {
    var result = target
    for entry in patch.entries {
      switch entry.value {
      case .null: result[entry.key] = nil
      case let value: result[entry.key] = apply(value, to: result[entry.key])
      }
    }
    return result
  }

  /// `target` is nil where there is nothing yet.
  package static func apply(_ patch: Value, to target: Value?) -> Value {
    guard case .map(let patch) = patch else { return patch }
    guard case .map(let target) = target else { return .map(apply(patch, to: ValueMap())) }
    return .map(apply(patch, to: target))
  }
}
