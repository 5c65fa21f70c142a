import Replication
import Wire

/// The conflicts of a document (rule M11) as people ask a backend about them.
enum ConflictText {
  /// Conflicts of one document that are told; all of them stay in its merge state.
  static let limit = 64

  /// Nil where there are none. What one replica wrote alone has none: it had seen all of it.
  static func of(_ state: DocumentState) -> String? {
    guard state.changes.count > 1 else { return nil }
    let items = state.inbox().prefix(limit).compactMap(item)
    return items.isEmpty ? nil : ExtendedJSON.text(.array(items))
  }

  private static func item(_ conflict: Conflict) -> Value? {
    let (path, value) = (path(conflict.path), conflict.value ?? .null)
    guard !path.holdsNull else { return nil }
    return ValueMap([
      ValueMap.Entry(key: "kind", value: .string(Text("\(conflict.kind)"))),
      ValueMap.Entry(key: "path", value: .string(path)),
      ValueMap.Entry(key: "value", value: value.holdsNull ? .null : value),
      ValueMap.Entry(key: "written", value: written(conflict.timestamp)),
    ]).map(Value.map)
  }

  /// Keys with dots between; an element of a list is `[]`, a member of a set `{}`.
  private static func path(_ segments: [PathSegment]) -> Text {
    Text(
      segments.map { segment in
        switch segment {
        case .key(let key): key.string
        case .element: "[]"
        case .member: "{}"
        }
      }.joined(separator: "."))
  }

  /// As PostgreSQL reads a time.
  private static func written(_ timestamp: HybridTimestamp) -> Value {
    guard let text = CalendarTime.text(Int64(clamping: timestamp.milliseconds)) else { return .null }
    return .string(Text(String(decoding: text, as: UTF8.self)))
  }
}
