import Replication
import Seamesh

let maintenanceRoutes: [Route] = [
  Route(
    method: .post, template: "/v1/backup", name: "backUp",
    summary: "A consistent copy of the store while the node runs on, with its progress as JSON lines.",
    body: .json(byteLimit: ServerLimit.smallBodyBytes, backupSchema), result: .lines(of: backupLine),
    refusals: [.notPermitted, .unprocessable], unixSocketOnly: true
  ) { request, surroundings in
    let members = try Members(JSON.envelope(request.body), of: "a backup", allowed: backupSchema.memberNames)
    let path = try members.string("path").string
    guard path.hasPrefix("/"), !path.utf8.contains(0) else {
      throw Problem.unprocessable("the path of a backup must be absolute, without zero bytes")
    }
    return try backUp(to: path, request, surroundings)
  },
  Route(
    method: .post, template: "/v1/forwarding/send", name: "sendForwarding",
    summary: "Forwards at once what waits for the backend, also where an earlier failure made a pause.",
    result: .json(.object([.required("asked", .boolean)])), refusals: [.unprocessable]
  ) { _, surroundings in
    try surroundings.node.sendForwardingNow()
    return .json(.object(["asked": .bool(true)]))
  },
  Route(
    method: .get, template: "/v1/forwarding/refused", name: "listRefused",
    summary:
      "Runs and statements that the backend refuses, at most 1,024 of each, with the backend's words. Of a run, first and last "
      + "are the numbers of its changes, or null where the backend refuses how far the chain counts; the rest of its chain waits "
      + "with it. Of a statement, issuer is the device that signed it and number its place among those of its issuer.",
    result: .json(
      .object([
        .required("refused", .array(of: RefusedRunStatus.schema)),
        .required("statements", .array(of: RefusedStatementStatus.schema)),
      ])), refusals: [.unprocessable]
  ) { _, surroundings in
    .json(
      .object([
        "refused": .list(try surroundings.node.refusedRuns(), \.value),
        "statements": .list(try surroundings.node.refusedStatements(), \.value),
      ]))
  },
]

private let backupSchema = Schema.object([.required("path", .string(pattern: #"^/[^\u0000]*$"#))])
private let backupLine = Schema.any([
  .object([.required("done", .count), .required("total", .count)]), .object([.required("path", .string)]),
  .object([.required("error", .problem)]),
])

/// Lines `{"done":pages,"total":pages}`, then `{"path":…}` once the copy is whole, or `{"error":…}` where it broke off.
private func backUp(to path: String, _ request: Request, _ surroundings: Surroundings) throws(NodeError) -> Response {
  let node = surroundings.node
  return try piped("backup", request, surroundings) { lines throws(NodeError) in
    var lastShown: Int64?
    do throws(NodeError) {
      try node.backup(to: path) { done, total in
        let now = monotonicMilliseconds()
        guard lastShown == nil || now - (lastShown ?? 0) >= progressMilliseconds else { return }
        lastShown = now
        // A reader that left does not stop the copy: it is the file that counts.
        _ = lines.append(
          JSON.render(.object(["done": .int(Int64(done)), "total": .int(Int64(total))])), flush: true)
      }
    } catch {
      guard lastShown != nil else { throw error }
      // The status has gone out already.
      _ = lines.append(JSON.render(.object(["error": Problem(error).value])))
      return
    }
    _ = lines.append(JSON.render(.object(["path": .text(path)])))
  }
}

/// Often enough for a progress bar.
private let progressMilliseconds: Int64 = 200
