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
    let expected = ["partition", "collection", "id", "eraseAbsent", "If-Match", "If-None-Match"]
    #expect(names == expected.map { .string(Text($0)) })
    #expect(put?["requestBody"]?.asMap?["content"]?.asMap?["application/json"] != nil)
    #expect(put?["responses"]?.asMap?["201"] != nil)
  }
}
