import Replication

/// A dotted path such as `crew.name` or `notes.0.note`, with MongoDB's meaning of arrays on the way.
package struct FieldPath: Sendable, Hashable {
  package let text: Text
  package let segments: [Text]
  /// The array index that a segment may also be.
  private let indices: [Int?]

  package init(_ text: Text) throws(NodeError) {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let segments = parts.map { Text(String($0) ?? "") }
    guard segments.count <= Value.depthLimit else {
      throw NodeError(
        .tooLarge, "The path \(text.string.prefix(60))… has more than \(Value.depthLimit) parts.",
        limit: .init(Value.depthLimit, "levels"))
    }
    for segment in segments where segment.utf8.isEmpty || segment.utf8.count > Value.keyByteLimit {
      throw NodeError(.badRequest, "The path “\(text.string.prefix(60))” has an empty or overlong part.")
    }
    self.text = text
    self.segments = segments
    indices = segments.map(FieldPath.index)
  }

  /// Decimal digits without leading zeros, as far as arrays in documents can reach.
  static func index(_ segment: Text) -> Int? {
    let digits = segment.utf8
    guard digits.count < 10, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      digits.count == 1 || digits.first != UInt8(ascii: "0")
    else { return nil }
    return Int(segment.string)
  }

  var startsAtID: Bool { segments.first == "_id" }

  /// Whether `test` holds for any value that the path leads to; nil stands for a missing field.
  ///
  /// On the way an array stands for its element at an index, and for each map in it; without either it leads nowhere
  /// and `test` is not asked. With `expandsArrays` an array at the end stands for itself and for each of its elements.
  func leads(
    from id: Value, _ body: ValueMap, expandsArrays: Bool = true, toAnyWhere test: (Value?) -> Bool
  ) -> Bool {
    guard let first = segments.first else { return false }
    guard let value = startsAtID ? id : body[first] else { return test(nil) }
    return leads(from: value, 1, expandsArrays, test)
  }

  private func leads(from value: Value, _ position: Int, _ expandsArrays: Bool, _ test: (Value?) -> Bool) -> Bool {
    guard position < segments.count else {
      if test(value) { return true }
      guard expandsArrays, case .array(let items) = value else { return false }
      return items.contains { test($0) }
    }
    switch value {
    case .map(let map):
      guard let child = map[segments[position]] else { return test(nil) }
      return leads(from: child, position + 1, expandsArrays, test)
    case .array(let items):
      if let index = indices[position], index < items.count,
        leads(from: items[index], position + 1, expandsArrays, test)
      {
        return true
      }
      return items.contains { item in
        guard case .map = item else { return false }
        return leads(from: item, position, expandsArrays, test)
      }
    default:
      return test(nil)
    }
  }
}
