import Replication

/// What the naive rules say of one document that some change wrote.
package struct NaiveDocument: Sendable {
  package struct Key: Hashable, Sendable {
    package let collection: [UInt8]
    /// Canonical bytes of the id (M2).
    package let id: [UInt8]

    static func areInOrder(_ a: Key, _ b: Key) -> Bool {
      a.collection == b.collection
        ? OracleBytes.areInOrder(a.id, b.id) : OracleBytes.areInOrder(a.collection, b.collection)
    }
  }

  package let key: Key
  /// M10; odd: alive.
  package let generation: UInt64
  /// Nil where the document is not alive.
  package let body: Value?
  package let inbox: [NaiveConflict]

  /// Does the document show this body, byte by byte (M2)? Nil: not alive.
  package func shows(_ other: ValueMap?) -> Bool {
    body.map(OracleBytes.of) == other.map { OracleBytes.of(.map($0)) }
  }
}

/// An entry of the inbox (M11).
package struct NaiveConflict: Sendable, Equatable {
  package let generation: UInt64
  /// Of a set's member, the member's path.
  package let path: [PathSegment]
  /// `set`, `remove`, `increment` or `add`.
  package let kind: String
  package let value: Value?
  package let dot: Dot
  package let timestamp: UInt64

  package init(
    generation: UInt64, path: [PathSegment], kind: String, value: Value?, dot: Dot, timestamp: UInt64
  ) {
    (self.generation, self.path, self.kind) = (generation, path, kind)
    (self.value, self.dot, self.timestamp) = (value, dot, timestamp)
  }

  /// By bytes (M2), so that nothing hangs on how the code under test compares values.
  package static func == (a: NaiveConflict, b: NaiveConflict) -> Bool {
    (a.generation, a.kind, a.timestamp) == (b.generation, b.kind, b.timestamp) && a.dot == b.dot
      && OraclePath(a.path) == OraclePath(b.path) && a.value.map(OracleBytes.of) == b.value.map(OracleBytes.of)
  }
}
