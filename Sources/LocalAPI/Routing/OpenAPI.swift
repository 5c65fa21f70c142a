import Replication
import Seamesh

/// The description of the interface (OpenAPI 3.1), made from the table that answers.
func openAPI(_ routes: [Route]) -> Value {
  var paths = ValueMap()
  for route in routes {
    var item: ValueMap = if case .map(let known)? = paths[Text(route.template)] { known } else { ValueMap() }
    item[Text(route.method.rawValue.lowercased())] = operation(route)
    paths[Text(route.template)] = .map(item)
  }
  return .object([
    "openapi": .text("3.1.0"),
    "info": .object([
      "title": .text("Seamesh, local interface"), "version": .text("1"),
      "description": .text(
        "JSON is relaxed MongoDB Extended JSON. Names and ids are percent-encoded path segments; an id segment that "
          + "begins with { or \" is Extended JSON, any other is a string id."),
    ]),
    "paths": .map(paths),
    "components": .object([
      "securitySchemes": .object([
        "bearer": .object([
          "type": .text("http"), "scheme": .text("bearer"), "description": .text("On TCP: DATA/api.token."),
        ])
      ]),
      "schemas": .object(["Problem": problemSchema]),
    ]),
  ])
}

private func operation(_ route: Route) -> Value {
  var members = ValueMap(members: [
    "operationId": .text(route.name), "summary": .text(route.summary), "responses": responses(route),
    "security": route.unixSocketOnly ? .array([]) : .array([.object([:]), .object(["bearer": .array([])])]),
  ])
  let parameters =
    route.parameters.map { parameter($0, in: "path", required: true, meaning: meaning(of: $0)) }
    + route.query.map { parameter($0.name, in: "query", meaning: $0.meaning, schema: schema($0.kind)) }
    + route.headers.map { parameter($0, in: "header", meaning: "RFC 9110") }
  if !parameters.isEmpty { members["parameters"] = .array(parameters) }
  if !route.body.mediaTypes.isEmpty { members["requestBody"] = requestBody(route.body) }
  if route.unixSocketOnly { members["description"] = .text("On the Unix socket only.") }
  return .map(members)
}

private func parameter(
  _ name: String, in place: Text, required: Bool = false, meaning: String, schema: Value = schema("string")
) -> Value {
  .object([
    "name": .text(name), "in": .string(place), "required": .bool(required), "description": .text(meaning),
    "schema": schema,
  ])
}

private func schema(_ type: String) -> Value { .object(["type": .text(type)]) }

private func schema(_ kind: Route.QueryParameter.Kind) -> Value {
  switch kind {
  case .flag: .object(["type": .text("string"), "enum": .array([.text("true"), .text("false")])])
  case .count: .object(["type": .text("integer"), "minimum": .int(0)])
  case .text: schema("string")
  case .json: .object(["type": .text("string"), "contentMediaType": .text("application/json")])
  }
}

private func meaning(of parameter: String) -> String {
  switch parameter {
  case "partition": "Name of a partition, 1 to \(PartitionName.byteLimit) bytes."
  case "collection": "Name of a collection."
  case "id": "Id of a document, at most \(ServerLimit.idBytes) bytes."
  case "pattern": "Name of a partition, or a prefix with * at its end."
  case "serial": "Number of an invitation."
  default: parameter
  }
}

private func requestBody(_ body: Route.Body) -> Value {
  .object([
    "required": .bool(true), "description": .text("At most \(body.byteLimit) bytes."),
    "content": content(body.mediaTypes, schema: schema(body)),
  ])
}

private func schema(_ body: Route.Body) -> Value {
  switch body {
  case .none, .lines: return schema("string")
  case .patch: return schema("object")
  case .json(_, let members):
    guard !members.isEmpty else { return schema("object") }
    var properties = ValueMap()
    for member in members { properties[Text(member)] = .object([:]) }
    return .object([
      "type": .text("object"), "properties": .map(properties), "additionalProperties": .bool(false),
    ])
  }
}

private func content(_ types: [MediaType], schema: Value) -> Value {
  var members = ValueMap()
  for type in types { members[Text(type.rawValue)] = .object(["schema": schema]) }
  return .map(members)
}

private func responses(_ route: Route) -> Value {
  var members = ValueMap(members: ["default": refusal("What went wrong, and the limit where one was passed.")])
  for kind in route.refusals { members[Text("\(kind.status)")] = refusal("\(kind.title).") }
  for status in route.statuses {
    members[Text("\(status)")] =
      status == 304
      ? .object(["description": .text("Not modified.")])
      : .object([
        "description": .text("Done."),
        "content": content([route.answers], schema: schema(route.answers == .json ? "object" : "string")),
      ])
  }
  return .map(members)
}

private func refusal(_ meaning: String) -> Value {
  .object([
    "description": .text(meaning),
    "content": content([.problem], schema: .object(["$ref": .text("#/components/schemas/Problem")])),
  ])
}

private let problemSchema = Value.object([
  "type": .text("object"),
  "required": .list(["type", "title", "status", "detail"]) { .text($0) },
  "properties": .object([
    "type": .object(["enum": .list(Problem.Kind.allCases) { .text("urn:seamesh:problem:\($0.rawValue)") }]),
    "title": .object(["type": .text("string")]), "status": .object(["type": .text("integer")]),
    "detail": .object(["type": .text("string")]), "limit": .object(["type": .text("integer")]),
    "unit": .object(["type": .text("string")]), "line": .object(["type": .text("integer")]),
    "column": .object(["type": .text("integer")]), "offset": .object(["type": .text("integer")]),
  ]),
])
