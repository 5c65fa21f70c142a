import Foundation
import LocalAPITestSupport
import Replication
import Testing

@testable import LocalAPI

@Suite("The description of the interface")
struct DescriptionTests {
  @Test("openapi.json lists exactly the requests that the router answers")
  func exactness() throws {
    let server = try TestServer()
    // Extended JSON would take some of its schemas for values.
    let text = Data(try server.ask("GET", "/v1/openapi.json").body)
    let description = try #require(JSONSerialization.jsonObject(with: text) as? [String: Any])
    let paths = try #require(description["paths"] as? [String: [String: Any]])
    let described = paths.flatMap { path in path.value.keys.map { "\($0.uppercased()) \(path.key)" } }
    #expect(described.sorted() == allRoutes.map { "\($0.method.rawValue) \($0.template)" }.sorted())
    for route in allRoutes {
      let filled = route.template.replacing(/\{\w+\}/, with: "x")
      let body = route.body.mediaTypes.isEmpty ? nil : "{}"
      let answer = try server.ask(
        route.method.rawValue, route.result.mediaType == .events ? filled + "?limit=x" : filled, body,
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
    let filter = watch?["parameters"]?.asArray.compactMap(\.asMap).first { $0["name"] == .string("filter") }
    let described = filter?["content"]?.asMap?["application/json"]?.asMap?["schema"]
    #expect(described == .object(["$ref": .text("#/components/schemas/Filter")]))
    for method in ["put", "patch", "delete"] as [Text] {
      #expect(schema(operation(documents, method), parameter: "If-None-Match") != nil, "\(method)")
    }
  }

  @Test("no body and no answer is described by less than what it holds")
  func everythingDescribed() throws {
    for route in allRoutes {
      let described = operation(route.template, Text(route.method.rawValue.lowercased()))
      let body = described?["requestBody"]?.asMap
      #expect((body?["required"] == .bool(true)) == !route.body.mediaTypes.isEmpty, "\(route.name)")
      #expect(
        body?["content"]?.asMap?.entries.map(\.key.string) ?? [] == route.body.mediaTypes.map(\.rawValue).sorted())
      for status in route.statuses where status != 304 {
        let answer = described?["responses"]?.asMap?[Text("\(status)")]?.asMap
        let content = answer?["content"]?.asMap?[Text(route.result.mediaType.rawValue)]?.asMap
        #expect(content?["schema"]?.asMap?.isEmpty == false, "\(route.name)")
        #expect((content?["x-itemSchema"] != nil) == (route.result.mediaType == .lines), "\(route.name)")
        #expect((content?["x-eventSchemas"] != nil) == (route.result.mediaType == .events), "\(route.name)")
      }
    }
  }

  @Test("every name that a schema refers to is there, and no schema stands in it as data")
  func references() throws {
    let text = try TestServer().ask("GET", "/v1/openapi.json").text
    let known = openAPI(allRoutes).asMap?["components"]?.asMap?["schemas"]?.asMap
    for match in text.matches(of: /"\$ref":"#\/components\/schemas\/(\w+)"/) {
      #expect(known?[Text(String(match.1))] != nil, "\(match.1)")
    }
    #expect(!text.contains("{\"$literal\":{\"$"))
  }

  @Test("what the description names as a member is taken, and nothing else is")
  func describedMembers() throws {
    let server = try TestServer()
    for route in allRoutes {
      guard case .json(_, _, let schema) = route.body, !schema.memberNames.isEmpty else { continue }
      let target = route.template.replacing(/\{\w+\}/, with: "x")
      for member in schema.memberNames + ["stray"] {
        let answer = try server.ask(route.method.rawValue, target, "{\"\(member.string)\":null}")
        #expect(
          answer.detail.contains("has no member") == (member == "stray"),
          "\(route.name) \(member.string): \(answer.text)")
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
