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

  /// Every document matches.
  package var matchesAll: Bool {
    if case .all(let conditions) = condition { conditions.isEmpty } else { false }
  }

  /// The only ids that can match, where the filter says so at its top: spares a scan. None may stand in it twice.
  package var possibleIDs: [Value]? { Filter.possibleIDs(condition) }

  private static func possibleIDs(_ condition: Condition) -> [Value]? {
    switch condition {
    case .all(let conditions): conditions.lazy.compactMap(possibleIDs).first
    case .field(let path, .equal(let id)) where path.segments == ["_id"]: [id].compactMap(identity)
    case .field(let path, .among(let ids)) where path.segments == ["_id"]: Array(Set(ids.compactMap(identity)))
    default: nil
    }
  }

  /// The id that equals `value`: 1.0 finds the id 1. Nil for what no id is.
  private static func identity(_ value: Value) -> Value? {
    switch value {
    case .string, .int, .objectID, .uuid: value
    case .double(let number): Int64(exactly: number).map { .int($0) }
    default: nil
    }
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
