import LocalAPITestSupport
import Replication
import Testing

@testable import LocalAPI

@Suite("The description of the interface")
struct DescriptionTests {
  @Test("openapi.json lists exactly the requests that the router answers")
  func exactness() throws {
    let server = try TestServer()
    let paths = try #require(server.ask("GET", "/v1/openapi.json").json["paths"]?.asMap)
    let described = paths.entries.flatMap { path in
      (path.value.asMap?.entries ?? []).map { "\($0.key.string.uppercased()) \(path.key.string)" }
    }
    #expect(described.sorted() == allRoutes.map { "\($0.method.rawValue) \($0.template)" }.sorted())
    for route in allRoutes {
      let filled = route.template.replacing(/\{\w+\}/, with: "x")
      let body = route.body.mediaTypes.isEmpty ? nil : "{}"
      let answer = try server.ask(
        route.method.rawValue, route.answers == .events ? filled + "?limit=x" : filled, body,
        type: route.body.mediaTypes.first?.rawValue ?? "")
      let isUnknown = answer.status == 405 || answer.detail.contains("nothing is served")
      #expect(!isUnknown, "\(route.method.rawValue) \(filled): \(answer.text)")
    }
  }

  @Test("every operation has a name of its own and describes its parameters")
  func parameters() throws {
    #expect(Set(allRoutes.map(\.name)).count == allRoutes.count)
    let paths = openAPI(allRoutes).asMap?["paths"]?.asMap
    let put = paths?["/v1/partitions/{partition}/collections/{collection}/documents/{id}"]?.asMap?["put"]?.asMap
    let names = put?["parameters"]?.asArray.compactMap { $0.asMap?["name"] }
    let expected = ["partition", "collection", "id", "keepAbsent", "If-Match", "If-None-Match"]
    #expect(names == expected.map { .string(Text($0)) })
    #expect(put?["requestBody"]?.asMap?["content"]?.asMap?["application/json"] != nil)
    #expect(put?["responses"]?.asMap?["201"] != nil)
  }

  private func operation(_ path: String, _ method: Text) -> ValueMap? {
    openAPI(allRoutes).asMap?["paths"]?.asMap?[Text(path)]?.asMap?[method]?.asMap
  }

  private func schema(_ operation: ValueMap?, parameter: String) -> ValueMap? {
    operation?["parameters"]?.asArray.compactMap(\.asMap).first { $0["name"] == .string(Text(parameter)) }?["schema"]?
      .asMap
  }

  @Test("parameters say what they take: flags true or false, counts whole numbers, filters JSON")
  func parameterSchemas() {
    let documents = "/v1/partitions/{partition}/collections/{collection}/documents/{id}"
    for (method, flag) in [("put", "keepAbsent"), ("patch", "upsert")] as [(Text, String)] {
      let schema = schema(operation(documents, method), parameter: flag)
      #expect(schema?["enum"] == .array([.string("true"), .string("false")]), "\(flag)")
    }
    let watch = operation("/v1/partitions/{partition}/collections/{collection}/watch", "get")
    #expect(schema(watch, parameter: "limit")?["type"] == .string("integer"))
    #expect(schema(watch, parameter: "filter")?["contentMediaType"] == .string("application/json"))
    for method in ["put", "patch", "delete"] as [Text] {
      #expect(schema(operation(documents, method), parameter: "If-None-Match") != nil, "\(method)")
    }
  }

  @Test("bodies are described as the objects that they are, with their members where these are fixed")
  func bodySchemas() throws {
    for route in allRoutes where !route.body.mediaTypes.isEmpty {
      let body = operation(route.template, Text(route.method.rawValue.lowercased()))?["requestBody"]?.asMap
      #expect(body?["required"] == .bool(true))
      for type in route.body.mediaTypes {
        let schema = body?["content"]?.asMap?[Text(type.rawValue)]?.asMap?["schema"]?.asMap
        #expect(schema?["type"] == .string(type == .lines ? "string" : "object"), "\(route.name) \(type)")
      }
    }
    let find = operation("/v1/partitions/{partition}/collections/{collection}/find", "post")?["requestBody"]?.asMap
    let schema = find?["content"]?.asMap?["application/json"]?.asMap?["schema"]?.asMap
    #expect(
      schema?["properties"]?.asMap?.entries.map(\.key.string) == ["filter", "limit", "projection", "skip", "sort"])
    #expect(schema?["additionalProperties"] == .bool(false))
  }

  @Test("what the description names as a member is taken, and nothing else is")
  func describedMembers() throws {
    let server = try TestServer()
    for route in allRoutes {
      guard case .json(_, let members) = route.body, !members.isEmpty else { continue }
      let target = route.template.replacing(/\{\w+\}/, with: "x")
      for member in members + ["stray"] {
        let answer = try server.ask(route.method.rawValue, target, "{\"\(member)\":null}")
        #expect(
          answer.detail.contains("has no member") == (member == "stray"), "\(route.name) \(member): \(answer.text)")
      }
    }
  }

  @Test("problems are described with every type that there is, and requests of the socket alone as such")
  func problems() {
    let description = openAPI(allRoutes).asMap
    let schema = description?["components"]?.asMap?["schemas"]?.asMap?["Problem"]?.asMap
    let types = schema?["properties"]?.asMap?["type"]?.asMap?["enum"]?.asArray
    #expect(types?.count == Problem.Kind.allCases.count && Set(types ?? []).count == types?.count)
    for route in allRoutes {
      let operation = operation(route.template, Text(route.method.rawValue.lowercased()))
      #expect(operation?["responses"]?.asMap?["default"] != nil)
      #expect((operation?["security"] == .array([])) == route.unixSocketOnly, "\(route.name)")
    }
  }
}
