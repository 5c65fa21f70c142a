import Replication

/// A compiled MongoDB-style filter: a pure test of one document.
///
/// Equality follows MongoDB: an array matches if it or one of its elements is equal, null matches a missing field too
/// (and nothing else does: `{"draft": false}` leaves out documents where `draft` is null or absent).
package struct Filter: Sendable {
  indirect enum Condition: Sendable {
    case all([Condition])
    case any([Condition])
    case not(Condition)
    case field(FieldPath, Predicate)
  }

  enum Predicate: Sendable {
    case equal(Value)
    case among([Value])
    case less(Value, orEqual: Bool)
    case greater(Value, orEqual: Bool)
    case exists
    case contains(TextNeedle)
  }

  let condition: Condition

  package func matches(id: Value, _ body: ValueMap) -> Bool { Filter.holds(condition, id, body) }

  /// The only ids that can match, where the filter says so at its top: spares a scan.
  package var possibleIDs: [Value]? {
    guard case .all(let conditions) = condition else { return nil }
    for case .field(let path, let predicate) in conditions where path.segments == ["_id"] {
      switch predicate {
      case .equal(let id): return Filter.identify([id])
      case .among(let ids): return Filter.identify(ids)
      default: break
      }
    }
    return nil
  }

  /// Nil where equality in filters is wider than identity of ids: numbers, and what may contain numbers.
  private static func identify(_ ids: [Value]) -> [Value]? {
    ids.allSatisfy { [2, 5, 6, 7, 8, 9].contains(ValueOrder.kind($0)) } ? ids : nil
  }

  private static func holds(_ condition: Condition, _ id: Value, _ body: ValueMap) -> Bool {
    switch condition {
    case .all(let conditions): conditions.allSatisfy { holds($0, id, body) }
    case .any(let conditions): conditions.contains { holds($0, id, body) }
    case .not(let condition): !holds(condition, id, body)
    case .field(let path, .exists): path.leads(from: id, body, expandsArrays: false) { $0 != nil }
    case .field(let path, let predicate): path.leads(from: id, body) { holds(predicate, $0) }
    }
  }

  private static func holds(_ predicate: Predicate, _ value: Value?) -> Bool {
    switch predicate {
    case .equal(let operand): return ValueOrder.equal(value ?? .null, operand)
    case .among(let operands): return operands.contains { ValueOrder.equal(value ?? .null, $0) }
    case .less(let operand, let orEqual):
      return compares(value ?? .null, operand) { $0 < 0 || orEqual && $0 == 0 }
    case .greater(let operand, let orEqual):
      return compares(value ?? .null, operand) { $0 > 0 || orEqual && $0 == 0 }
    case .exists: return value != nil
    case .contains(let needle):
      guard case .string(let text) = value else { return false }
      return needle.isFound(in: text)
    }
  }

  private static func compares(_ value: Value, _ operand: Value, _ test: (Int) -> Bool) -> Bool {
    ValueOrder.kind(value) == ValueOrder.kind(operand) && test(ValueOrder.compare(value, operand))
  }
}
