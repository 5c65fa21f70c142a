import Replication
import Seamesh
import Wire

/// Schemas that have a name in `components`. What nests has to have one.
let schemaComponents: KeyValuePairs<Text, Value> = [
  "Value": anyValue.value, "Document": documentSchema.value, "DocumentID": documentIDSchema.value,
  "Filter": filterSchema.value, "FilterOperators": filterOperators.value, "Right": RightStatus.objectSchema.value,
  "Problem": problemSchema.value,
]

extension Schema {
  static let documentValue = named("Value")
  static let document = named("Document")
  static let documentID = named("DocumentID")
  static let filter = named("Filter")
  static let problem = named("Problem")

  /// Of the URL, before it is percent-encoded.
  static let partitionName = string(
    from: 1, to: PartitionName.byteLimit, pattern: #"^[^\u0000-\u001f\u007f]+$"#)
  /// Of a partition that documents stand in.
  static let partitionOfDocuments = string(
    from: 1, to: PartitionName.byteLimit, pattern: #"^[^\u0000-\u001f\u007f]*[^\u0000-\u001f\u007f*]$"#)
  static let collectionName = string(
    from: 1, to: Payload.collectionByteLimit, pattern: #"^[^\u0000-\u001f\u007f]+$"#)
  static let idSegment = any([
    string(from: 1, to: ServerLimit.idBytes, pattern: #"^[^\u0000{"][^\u0000]*$"#),
    string(pattern: #"^\{"\$oid":"[0-9a-f]{24}"\}$"#),
    string(pattern: #"^\{"\$uuid":"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"\}$"#),
    string(pattern: #"^\{"\$numberLong":"(0|-?[1-9][0-9]{0,17})"\}$"#),
    string(pattern: #"^"[A-Za-z0-9{} ]{1,255}"$"#),
  ])
  /// Of a user, a role, a device.
  static func name(from least: Int = 0) -> Schema {
    string(from: least, to: StatementCodec.textByteLimit, pattern: #"^[^\u0000-\u001f\u007f]*$"#)
  }
  static let profileKey = string(to: StatementCodec.textByteLimit, pattern: #"^(?!\$)[^\u0000]*$"#)
  static let entityTag = string(pattern: #"^[!#-~]+$"#)
  static let hexadecimal = string(pattern: "^[0-9a-f]+$")
}

private let mapKey = Schema.string(to: Value.keyByteLimit, pattern: #"^[^\u0000]*$"#)

private let oid = wrapper("$oid", .string(pattern: "^[0-9A-Fa-f]{24}$"))
private let uuid = wrapper("$uuid", .string(pattern: "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"))
private let uuidBytes = binary(["04", "4"], #"^[A-Za-z0-9+/]{21}[AQgw]==$"#)
private let integerText = Schema.string(pattern: "^(0|-?[1-9][0-9]{0,17})$")

private func wrapper(_ name: String, _ content: Schema) -> Schema { .object([.required(name, content)]) }

private func binary(_ subtypes: [String], _ pattern: String) -> Schema {
  wrapper(
    "$binary", .object([.required("base64", .string(pattern: pattern)), .required("subType", .oneOf(subtypes))]))
}

private let base64Pattern =
  #"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?$"#

/// What JSON lacks stands in objects with one member, as relaxed Extended JSON has it.
private let wrappers: [Schema] = [
  oid, uuid, uuidBytes, binary(["00", "0"], base64Pattern),
  wrapper("$date", .any([.string(format: "date-time"), wrapper("$numberLong", integerText)])),
  wrapper("$numberInt", .string(pattern: "^(0|-?[1-9][0-9]{0,8})$")), wrapper("$numberLong", integerText),
  wrapper("$numberDouble", .string(pattern: #"^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"#)),
  blob(to: BlobReference.pieceByteCount, list: []),
  blob(
    from: BlobReference.pieceByteCount + 1, to: BlobReference.sizeLimit,
    list: [.required("list", .string(pattern: "^[0-9A-Fa-f]{64}$"))]),
  wrapper("$literal", .map(of: .documentValue, keys: mapKey)),
]

private func blob(from least: Int64 = 0, to greatest: Int64, list: [Schema.Property]) -> Schema {
  wrapper(
    "$blob",
    .object(
      [
        .required("hash", .string(pattern: "^[0-9A-Fa-f]{64}$")),
        .required("size", .integer(from: least, to: greatest)),
        .required("type", .string),
      ] + list))
}

private let scalars: [Schema] = [.null, .boolean, .integer, .number, .string]

private let anyValue = Schema.any(
  scalars + wrappers + [
    .array(of: .documentValue), .map(of: .documentValue, keys: mapKey.excluding(ExtendedJSON.reservedKeys)),
  ]
).describing(
  "A value of a document: relaxed Extended JSON. Numbers without point and exponent are 64-bit integers, the others "
    + "doubles. At most \(Value.depthLimit) levels; keys of at most \(Value.keyByteLimit) bytes.")

private let documentSchema = Schema.map(
  of: .documentValue, keys: .string(to: Value.keyByteLimit, pattern: #"^(?!\$)[^\u0000]*$"#),
  [.optional("_id", .documentID)]
).describing(
  "At most 1 MiB as it is stored, and \(Value.depthLimit) levels. One change writes at most \(Run.operationLimit) values: "
    + "a larger document is written in several steps.")

extension Schema {
  /// A document that says itself which one it is.
  static let documentWithID = any([named("Document")]).requiring(["_id"])
}

private let documentIDSchema = Schema.any([
  .string(from: 1, to: ServerLimit.idBytes), .integer, oid, uuid, uuidBytes, wrapper("$numberLong", integerText),
])

/// Keys with dots between; no part is empty.
private let fieldPath = Schema.string(pattern: #"^[^.\u0000]+(\.[^.\u0000]+)*$"#)
private let filterPath = Schema.string(pattern: #"^(?!\$)[^.\u0000]+(\.[^.\u0000]+)*$"#)
private let updatePath = Schema.string(
  pattern: #"^(?!_id(\.|$))[^.$\u0000][^.\u0000]*(\.[^.$\u0000][^.\u0000]*)*$"#)

private let filterSchema = Schema.map(
  of: .any([.named("FilterOperators"), filterOperand]), keys: filterKeys,
  ["$and", "$or", "$nor"].map { .optional($0, .array(of: .filter, from: 1)) })

private let filterKeys = Schema.any([.oneOf(["$and", "$or", "$nor"]), filterPath])

/// What a field is compared with: any value but an object that could be taken for operators.
private let filterOperand = Schema.any(
  scalars + wrappers + [
    .array(of: .documentValue), .map(of: .documentValue, keys: .string(pattern: #"^(?!\$)[^\u0000]*$"#)),
  ])

private let filterOperators = Schema.object(
  ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"].map { .optional($0, .documentValue) }
    + ["$in", "$nin"].map { .optional($0, .array(of: .documentValue)) }
    + [
      .optional("$exists", .any([.boolean, .integer(from: 0, to: 1)])),
      .optional("$not", .named("FilterOperators")), .optional("$contains", .string),
      .optional("$fold", .string(pattern: "^[cd]*$")),
    ]
).needing(["$fold": ["$contains"]]).nonempty

extension Schema {
  static let sort: Schema = {
    let direction = any([constant(.int(1)), constant(.int(-1))])
    return any([
      map(of: direction, keys: fieldPath, to: DocumentOrder.fieldLimit),
      array(of: map(of: direction, keys: fieldPath, from: 1, to: 1), to: DocumentOrder.fieldLimit),
    ]).describing("Fields with 1 or -1 in the order in which they count.")
  }()

  static let projection: Schema = {
    func all(_ modes: [Value]) -> Schema {
      map(of: Schema(["enum": .array(modes)]), keys: fieldPath, [.optional("_id", any([boolean, number]))])
    }
    return any([all([.int(1), .bool(true)]), all([.int(0), .bool(false)])]).describing(
      "Either the fields that are shown (1) or those that are not (0), `_id` aside; none above or below another.")
  }()

  static let updateOperators = object([
    .optional("$set", map(of: .documentValue, keys: updatePath)),
    .optional("$unset", map(of: .documentValue, keys: updatePath)),
  ]).nonempty.describing("MongoDB's update operators, of which these are built; no field above or below another.")

  static let mergePatch = map(
    of: .documentValue, keys: .string(to: Value.keyByteLimit, pattern: #"^(?!\$)[^\u0000]*$"#),
    [.optional("_id", .documentID)]
  ).describing("RFC 7396: null takes a field away.")
}
