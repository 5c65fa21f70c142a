import Replication

/// What a body, a member of one or a parameter looks like: JSON Schema 2020-12, as OpenAPI 3.1 takes it.
struct Schema: Sendable, Equatable {
  private(set) var members: ValueMap

  init(_ members: KeyValuePairs<Text, Value>) { self.members = ValueMap(members: members) }

  var value: Value { .map(members) }

  /// Whether it may stand, and then what: for the members of an object.
  struct Property: Sendable {
    let name: String
    let schema: Schema
    let isRequired: Bool

    static func required(_ name: String, _ schema: Schema) -> Property {
      Property(name: name, schema: schema, isRequired: true)
    }
    static func optional(_ name: String, _ schema: Schema) -> Property {
      Property(name: name, schema: schema, isRequired: false)
    }
    /// Of a request: null counts as absent.
    static func nullable(_ name: String, _ schema: Schema) -> Property { optional(name, .nullable(schema)) }
  }

  func describing(_ words: String) -> Schema { adding("description", .text(words)) }

  private func adding(_ name: Text, _ value: Value) -> Schema {
    var schema = self
    schema.members[name] = value
    return schema
  }

  /// Names of the members that an object may have.
  var memberNames: [Text] {
    guard case .map(let properties)? = members["properties"] else { return [] }
    return properties.entries.map(\.key)
  }
}

extension Schema {
  static let anything = Schema([:])
  static let null = Schema(["type": .text("null")])
  static let boolean = Schema(["type": .text("boolean")])
  static let string = Schema(["type": .text("string")])
  static let integer = Schema(["type": .text("integer"), "format": .text("int64")])
  static let number = Schema(["type": .text("number"), "format": .text("double")])
  /// 0 or more.
  static let count = integer(from: 0)

  static func integer(from least: Int64, to greatest: Int64? = nil) -> Schema {
    let schema = integer.adding("minimum", .int(least))
    return greatest.map { schema.adding("maximum", .int($0)) } ?? schema
  }

  /// Lengths are bytes of UTF-8 for the node; a schema can count characters alone.
  static func string(from least: Int = 0, to greatest: Int? = nil, pattern: String? = nil) -> Schema {
    var schema = string
    if least > 0 { schema = schema.adding("minLength", .int(Int64(least))) }
    if let greatest { schema = schema.adding("maxLength", .int(Int64(greatest))) }
    if let pattern { schema = schema.adding("pattern", .text(pattern)) }
    return schema
  }

  static func string(format: String) -> Schema { string.adding("format", .text(format)) }

  static func constant(_ value: Value) -> Schema { Schema(["const": value]) }

  static func oneOf(_ names: [String]) -> Schema { string.adding("enum", .list(names) { .text($0) }) }

  static func any(_ schemas: [Schema]) -> Schema { Schema(["anyOf": .list(schemas, \.value)]) }

  static func nullable(_ schema: Schema) -> Schema { any([schema, null]) }

  static func array(of items: Schema, from least: Int = 0, to greatest: Int? = nil) -> Schema {
    var schema = Schema(["type": .text("array"), "items": items.value])
    if least > 0 { schema = schema.adding("minItems", .int(Int64(least))) }
    if let greatest { schema = schema.adding("maxItems", .int(Int64(greatest))) }
    return schema
  }

  /// An object with these members and no other.
  static func object(_ properties: [Property]) -> Schema {
    var schemas = ValueMap()
    for property in properties { schemas[Text(property.name)] = property.schema.value }
    let required = properties.filter(\.isRequired).map(\.name).sorted()
    let schema = Schema([
      "type": .text("object"), "properties": .map(schemas), "additionalProperties": .bool(false),
    ])
    return required.isEmpty ? schema : schema.adding("required", .list(required) { .text($0) })
  }

  /// An object whose keys are data.
  static func map(
    of values: Schema, keys: Schema = .anything, from least: Int = 0, to greatest: Int? = nil, _ named: [Property] = []
  ) -> Schema {
    var schema = Schema(["type": .text("object"), "additionalProperties": values.value])
    if keys != .anything { schema = schema.adding("propertyNames", keys.value) }
    if least > 0 { schema = schema.adding("minProperties", .int(Int64(least))) }
    if let greatest { schema = schema.adding("maxProperties", .int(Int64(greatest))) }
    guard !named.isEmpty else { return schema }
    var schemas = ValueMap()
    for property in named { schemas[Text(property.name)] = property.schema.value }
    return schema.adding("properties", .map(schemas))
  }

  /// As above, with members that must not stand without others.
  func needing(_ names: [Text: [String]]) -> Schema {
    var map = ValueMap()
    for (name, others) in names { map[name] = .list(others) { .text($0) } }
    return adding("dependentRequired", .map(map))
  }

  func requiring(_ names: [String]) -> Schema { adding("required", .list(names) { .text($0) }) }

  /// As above, with a member at least.
  var nonempty: Schema { adding("minProperties", .int(1)) }

  func excluding(_ names: [String]) -> Schema { adding("not", .object(["enum": .list(names) { .text($0) }])) }

  /// `{"NAME":[…]}`
  static func listing(_ name: String, of items: Schema) -> Schema { object([.required(name, array(of: items))]) }

  static func named(_ name: String) -> Schema { Schema(["$ref": .text("#/components/schemas/\(name)")]) }
}

/// JSON as it stands. A schema has members that Extended JSON would take for wrappers, and mark as data.
func plainJSON(_ value: Value, into out: inout [UInt8]) {
  switch value {
  case .array(let items):
    out.append(UInt8(ascii: "["))
    for (index, item) in items.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      plainJSON(item, into: &out)
    }
    out.append(UInt8(ascii: "]"))
  case .map(let map):
    out.append(UInt8(ascii: "{"))
    for (index, entry) in map.entries.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      out += JSON.render(.string(entry.key)) + [UInt8(ascii: ":")]
      plainJSON(entry.value, into: &out)
    }
    out.append(UInt8(ascii: "}"))
  default: out += JSON.render(value)
  }
}
