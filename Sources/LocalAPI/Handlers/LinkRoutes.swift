import Replication
import Seamesh

let linkRoutes: [Route] = [
  Route(
    method: .get, template: "/v1/links", name: "listLinks",
    summary: "Classes of links: what passes on them, what they cost today, and what waits for them.",
    result: .json(.listing("links", of: LinkReport.schema))
  ) { _, surroundings in
    .json(.object(["links": .list(try surroundings.node.links(), \.value)]))
  },
  Route(
    method: .put, template: "/v1/links", name: "useLinks",
    summary: "Has every link be of the class that `use` names, through restarts; with auto each is by its rule again.",
    body: .json(byteLimit: ServerLimit.smallBodyBytes, useSchema), result: .json(useSchema), refusals: [.unprocessable]
  ) { request, surroundings in
    let members = try Members(JSON.envelope(request.body), of: "a choice of links", allowed: useSchema.memberNames)
    let name = try members.string("use")
    try surroundings.node.useLinks(name)
    return .json(.object(["use": .string(name)]))
  },
]

private let useSchema = Schema.object([.required("use", .oneOf(LinkReport.choices))])
