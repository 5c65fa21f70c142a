import Replication

struct Match {
  let route: Route
  let parameters: [String: Text]
}

/// Finds the route of a request. A path that is known by another method answers 405 with those there are.
struct Router: Sendable {
  let routes: [Route]

  func match(method: String, target: RequestTarget) throws(Problem) -> Match {
    let matches = routes.compactMap { route in
      Router.parameters(of: route, in: target.segments).map { Match(route: route, parameters: $0) }
    }
    guard !matches.isEmpty else {
      throw Problem(.notFound, "nothing is served at this path; /v1/openapi.json lists what is")
    }
    // libmicrohttpd leaves the body out of an answer to HEAD.
    let wanted = method == "HEAD" ? "GET" : method
    guard let match = matches.first(where: { $0.route.method.rawValue == wanted }) else {
      let allowed = matches.map(\.route.method.rawValue).joined(separator: ", ")
      throw Problem(.methodNotAllowed, "this path takes \(allowed)").with("Allow", allowed)
    }
    try checkQuery(target, match.route)
    return match
  }

  /// A misspelt parameter would silently do nothing.
  private func checkQuery(_ target: RequestTarget, _ route: Route) throws(Problem) {
    guard let stray = target.query.first(where: { field in !route.query.contains { Text($0.name) == field.name } })
    else { return }
    let known = route.query.map(\.name).joined(separator: ", ")
    throw .badRequest(
      "the query parameter \(stray.name.string) is unknown; there \(known.isEmpty ? "are none" : "are: \(known)")")
  }

  private static func parameters(of route: Route, in segments: [Text]) -> [String: Text]? {
    let template = route.segments
    guard template.count == segments.count else { return nil }
    var parameters: [String: Text] = [:]
    for (part, segment) in zip(template, segments) {
      if part.hasPrefix("{") {
        parameters[String(part.dropFirst().dropLast())] = segment
      } else if Text(String(part)) != segment {
        return nil
      }
    }
    return parameters
  }
}
