import Replication
import Seamesh
import Wire

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
      "schemas": .object(schemaComponents),
    ]),
  ])
}

private func operation(_ route: Route) -> Value {
  var members = ValueMap(members: [
    "operationId": .text(route.name), "summary": .text(route.summary), "responses": responses(route),
    "security": route.unixSocketOnly ? .array([]) : .array([.object([:]), .object(["bearer": .array([])])]),
  ])
  let parameters =
    route.parameters.map { pathParameter($0, of: route) } + route.query.map(queryParameter) + route.headers.map(header)
  if !parameters.isEmpty { members["parameters"] = .array(parameters) }
  if !route.body.mediaTypes.isEmpty { members["requestBody"] = requestBody(route.body) }
  if route.unixSocketOnly { members["description"] = .text("On the Unix socket only.") }
  return .map(members)
}

private func parameter(_ name: String, in place: String, _ meaning: String, _ content: (Text, Value)) -> Value {
  .object([
    "name": .text(name), "in": .text(place), "required": .bool(place == "path"), "description": .text(meaning),
    content.0: content.1,
  ])
}

private func pathParameter(_ name: String, of route: Route) -> Value {
  let reads = route.method == .get || route.onlyReads
  let (meaning, schema): (String, Schema) =
    switch name {
    case "partition": ("Name of a partition, 1 to \(PartitionName.byteLimit) bytes.", .partitionName)
    // Others may have written to collections that nobody can write to here.
    case "collection":
      (
        "Name of a collection, 1 to \(Payload.collectionByteLimit) bytes.",
        reads ? .string(from: 1, pattern: #"^[^\u0000]+$"#) : .collectionName
      )
    case "id": ("Id of a document, at most \(ServerLimit.idBytes) bytes; or of a conflict.", .idSegment)
    case "pattern": ("Name of a partition, or a prefix with * at its end.", .partitionName)
    case "serial": ("Number of an invitation.", .count)
    default: (name, .string)
    }
  return parameter(name, in: "path", meaning, ("schema", schema.value))
}

private func queryParameter(_ query: Route.QueryParameter) -> Value {
  let schema = query.schema.value
  return parameter(
    query.name, in: "query", query.meaning,
    query.isJSON ? ("content", .object(["application/json": .object(["schema": schema])])) : ("schema", schema))
}

private func header(_ header: Route.Header) -> Value {
  parameter(header.name, in: "header", header.meaning, ("schema", header.schema.value))
}

private func requestBody(_ body: Route.Body) -> Value {
  let content =
    switch body {
    case .none: ValueMap()
    case .json(_, _, let schema): content(.json, schema)
    case .patch:
      ValueMap(members: [
        MediaType.mergePatch.key: described(.mergePatch), MediaType.json.key: described(.updateOperators),
      ])
    case .lines(let schema): lines(of: schema)
    }
  return .object([
    "required": .bool(true), "description": .text(extent(of: body)), "content": .map(content),
  ])
}

/// A body of few bytes cannot have too many values.
private func extent(of body: Route.Body) -> String {
  let (bytes, values) = (body.byteLimit, body.valueLimit)
  let named = "values, objects and arrays with what is in them"
  if case .lines = body {
    let lines = "\(ServerLimit.importLines) lines, blank ones with them"
    return "At most \(bytes) bytes and \(lines); on each at most \(values) \(named)."
  }
  return bytes > values ? "At most \(bytes) bytes and \(values) \(named)." : "At most \(bytes) bytes."
}

private func described(_ schema: Schema) -> Value { .object(["schema": schema.value]) }

private func content(_ type: MediaType, _ schema: Schema) -> ValueMap {
  ValueMap(members: [type.key: described(schema)])
}

/// OpenAPI 3.1 has no word for the schema of one line, or of one event; 3.2 calls the first `itemSchema`.
private func lines(of schema: Schema) -> ValueMap {
  ValueMap(members: [
    MediaType.lines.key: .object(["schema": Schema.string.value, "x-itemSchema": schema.value])
  ])
}

private func content(_ result: Route.Result) -> ValueMap {
  switch result {
  case .json(let schema): return content(.json, schema)
  case .lines(let schema): return lines(of: schema)
  case .metrics: return content(.metrics, .string)
  case .events(let events):
    var schemas = ValueMap()
    for event in events { schemas[Text(event.name)] = event.data.value }
    return ValueMap(members: [
      MediaType.events.key: .object(["schema": Schema.string.value, "x-eventSchemas": .map(schemas)])
    ])
  }
}

extension MediaType {
  fileprivate var key: Text { Text(rawValue) }
}

/// Refusals that any request may meet: for what it is made of, for who asks, and for how the node is.
private func generalRefusals(_ route: Route) -> [Problem.Kind] {
  [
    .badRequest, .unauthorized, .notPermitted, .tooLarge, .targetTooLong, .unsupportedMediaType, .misdirected,
    .headersTooLarge, .failed, .busy, .unanswered,
  ] + (route.body.mediaTypes.isEmpty ? [] : [.diskFull])
}

private func responses(_ route: Route) -> Value {
  var members = ValueMap(members: ["default": refusal("What went wrong, and the limit where one was passed.")])
  for kind in generalRefusals(route) + route.refusals {
    let title = Problem.Kind.allCases.filter { $0.status == kind.status }.map(\.title).joined(separator: "; ")
    members[Text("\(kind.status)")] = refusal("\(title).")
  }
  for status in route.statuses {
    members[Text("\(status)")] =
      status == 304
      ? .object(["description": .text("Not modified.")])
      : .object(["description": .text("Done."), "content": .map(content(route.result))])
  }
  return .map(members)
}

private func refusal(_ meaning: String) -> Value {
  .object(["description": .text(meaning), "content": .map(content(.problem, .problem))])
}

let problemSchema = Schema.object([
  .required("type", .oneOf(Problem.Kind.allCases.map { "urn:seamesh:problem:\($0.rawValue)" })),
  .required("title", .string), .required("status", .integer(from: 400, to: 599)), .required("detail", .string),
  .optional("limit", .count), .optional("unit", .string), .optional("line", .integer(from: 1)),
  .optional("column", .integer(from: 1)), .optional("offset", .count),
  .optional("operation", .integer(from: 1, to: Int64(BulkLimit.requests))),
])
