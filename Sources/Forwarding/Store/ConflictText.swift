import Replication
import Wire

/// The conflicts of a document (rule M11) as people ask a backend about them.
enum ConflictText {
  /// Nil where there are none.
  static func of(_ state: DocumentState) -> String? {
    guard state.mayHaveConflicts else { return nil }
    let items = state.inbox().prefix(DocumentState.toldConflicts).compactMap(item)
    return items.isEmpty ? nil : ExtendedJSON.text(.array(items))
  }

  private static func item(_ conflict: Conflict) -> Value? {
    let (path, value) = (conflict.path.places, conflict.value ?? .null)
    guard !path.holdsNull else { return nil }
    return ValueMap([
      ValueMap.Entry(key: "kind", value: .string(Text("\(conflict.kind)"))),
      ValueMap.Entry(key: "path", value: .string(path)),
      ValueMap.Entry(key: "value", value: value.holdsNull ? .null : value),
      ValueMap.Entry(key: "written", value: written(conflict.timestamp)),
    ]).map(Value.map)
  }

  /// As PostgreSQL reads a time.
  private static func written(_ timestamp: HybridTimestamp) -> Value {
    guard let text = CalendarTime.text(Int64(clamping: timestamp.milliseconds)) else { return .null }
    return .string(Text(String(decoding: text, as: UTF8.self)))
  }
}
