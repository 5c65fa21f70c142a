import Replication

/// What can stand in an answer: how it looks as JSON, and the schema of that.
protocol Shown: SendableMetatype {
  static var schema: Schema { get }
  var value: Value { get }
}

/// An object whose members are listed once, for its JSON and for its schema, so that neither can leave the other.
protocol Tabled: Shown, Sendable {
  static var table: [Member<Self>] { get }
}

extension Tabled {
  static var objectSchema: Schema { .object(table.map(\.property)) }
  static var schema: Schema { objectSchema }

  var value: Value {
    var map = ValueMap()
    for member in Self.table { map[member.name] = member.read(self) }
    return .map(map)
  }
}

/// One member of an object of type `Owner`.
struct Member<Owner>: Sendable {
  let name: Text
  let property: Schema.Property
  /// Nil where the member is absent.
  let read: @Sendable (Owner) -> Value?

  init<Content: Shown>(
    _ name: String, _ path: any KeyPath<Owner, Content> & Sendable, _ schema: Schema = Content.schema
  ) {
    (self.name, property) = (Text(name), .required(name, schema))
    read = { $0[keyPath: path].value }
  }

  init(_ name: String, _ schema: Schema, _ read: @escaping @Sendable (Owner) -> Value) {
    (self.name, property, self.read) = (Text(name), .required(name, schema), read)
  }

  /// Absent where the node knows nothing: null would be a value like any other.
  init(absentable name: String, _ path: any KeyPath<Owner, Value?> & Sendable) {
    (self.name, property) = (Text(name), .optional(name, .documentValue))
    read = { $0[keyPath: path] }
  }
}

extension Bool: Shown {
  static var schema: Schema { .boolean }
  var value: Value { .bool(self) }
}

extension Int64: Shown {
  static var schema: Schema { .integer }
  var value: Value { .int(self) }
}

extension Int: Shown {
  static var schema: Schema { .integer }
  var value: Value { .int(Int64(self)) }
}

extension UInt64: Shown {
  static var schema: Schema { .count }
  var value: Value { .int(Int64(clamping: self)) }
}

extension Double: Shown {
  static var schema: Schema { .number }
  var value: Value { .double(self) }
}

extension String: Shown {
  static var schema: Schema { .string }
  var value: Value { .text(self) }
}

extension Text: Shown {
  static var schema: Schema { .string }
  var value: Value { .string(self) }
}

extension Value: Shown {
  static var schema: Schema { .documentValue }
  var value: Value { self }
}

extension ValueMap: Shown {
  static var schema: Schema { .map(of: .documentValue) }
  var value: Value { .map(self) }
}

extension Optional: Shown where Wrapped: Shown {
  static var schema: Schema { .nullable(Wrapped.schema) }
  var value: Value { map(\.value) ?? .null }
}

extension Array: Shown where Element: Shown {
  static var schema: Schema { .array(of: Element.schema) }
  var value: Value { .array(map(\.value)) }
}

extension Dictionary: Shown where Key == String, Value == Int64 {
  static var schema: Schema { .map(of: .integer) }
  var value: Replication.Value {
    var map = ValueMap()
    for (name, count) in self { map[Text(name)] = .int(count) }
    return .map(map)
  }
}
