/// A large value that is read and changed where it lies; what holds it moves and copies a reference alone.
///
/// A value itself: copies share what neither has changed.
struct InPlace<Value: Sendable>: Sendable {
  /// Shared by copies only as long as none of them changes it, which is what makes it sendable.
  private final class Storage: @unchecked Sendable {
    var value: Value?

    init(_ value: Value?) { self.value = value }
  }

  private var storage: Storage

  init(_ value: Value?) { storage = Storage(value) }

  /// Nil where there is none yet, and where that was set, which ends it.
  var value: Value? {
    _read { yield storage.value }
    _modify {
      if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
      yield &storage.value
    }
  }

  /// Answers what is asked of the whole. Nil where there is none.
  func look<Answer>(_ body: (Value) -> Answer) -> Answer? { value.map(body) }
}

/// A dictionary of large values: `Dictionary` moves a value out and in again for each change of a part of it, and copies it
/// for each look at one.
struct InPlaceTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var places: [Key: InPlace<Value>] = [:]
  /// Where a key has no value.
  private let nowhere = InPlace<Value>(nil)

  subscript(key: Key) -> Value? {
    // One `yield` of one expression: with a second one, or a constant before it, whoever reads a part is handed a copy of the
    // whole.
    _read { yield place(of: key).value }
    _modify {
      guard let index = places.index(forKey: key) else {
        var value: Value?
        defer { if let value { places[key] = InPlace(value) } }
        yield &value
        return
      }
      defer { if places.values[index].value == nil { places.remove(at: index) } }
      yield &places.values[index].value
    }
  }

  private func place(of key: Key) -> InPlace<Value> { places[key] ?? nowhere }

  var count: Int { places.count }
  var isEmpty: Bool { places.isEmpty }
  /// Apart from the table, which may be changed while they are gone through.
  var keys: [Key] { Array(places.keys) }
  var values: some Collection<Value> { places.values.lazy.compactMap { $0.value } }
  /// For whoever looks at a part of each, often: what ``values`` hands out is a copy of the whole.
  var eachInPlace: some Collection<InPlace<Value>> { places.values }

  func holds(_ key: Key) -> Bool { places.index(forKey: key) != nil }

  /// Answers what is asked of the whole value. Nil where there is none.
  func look<Answer>(at key: Key, _ body: (Value) -> Answer) -> Answer? { places[key]?.look(body) }

  mutating func removeValue(forKey key: Key) -> Value? { places.removeValue(forKey: key)?.value }
}

extension InPlaceTable: Sequence {
  func makeIterator() -> some IteratorProtocol<(key: Key, value: Value)> {
    places.lazy.compactMap { key, place in place.value.map { (key: key, value: $0) } }.makeIterator()
  }
}
