import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import LocalAPI

/// What the description says of each request's answers, against the answers.
@Suite("The statuses of every request")
struct RouteStatusTests {
  private struct Call {
    let route: String
    let target: String
    var body: String?
    var type = "application/json"
    var headers: [String] = []
    /// The node refuses everything with this.
    var failure: NodeError?
    var isLoopback = false
    let status: Int
  }

  private static let merge = "application/merge-patch+json"
  private static let lines = "application/x-ndjson"
  private static let documents = "/v1/partitions/p/collections/c/documents"
  private static let collection = "/v1/partitions/p/collections/c"
  private static let large = "{\"a\":\"" + String(repeating: "x", count: ServerLimit.documentBodyBytes) + "\"}"
  private static let forbidden = NodeError(.notPermitted, "this device may not write to p")
  private static let unreadable = NodeError(.notPermitted, "this device may not read p")

  private static let damaged = NodeError(.damaged, "document a is damaged on this device")
  private static let excessive = NodeError(.tooLarge, "the result has more than 10000 documents")

  private static let documentCalls: [Call] = [
    Call(route: "putDocument", target: documents + "/a", body: "{}", status: 201),
    Call(route: "putDocument", target: documents + "/a", body: "{\"n\":1}", status: 200),
    Call(route: "putDocument", target: documents + "/a", body: "{}", headers: ["If-None-Match: *"], status: 412),
    Call(route: "putDocument", target: documents + "/a", body: "{}", failure: forbidden, status: 403),
    Call(route: "putDocument", target: documents + "/a", body: large, status: 413),
    Call(route: "putDocument", target: documents + "/a", body: "{\"_id\":\"b\"}", status: 422),
    Call(route: "getDocument", target: documents + "/a", status: 200),
    Call(route: "getDocument", target: documents + "/a", headers: ["If-None-Match: *"], status: 304),
    Call(route: "getDocument", target: documents + "/b", status: 404),
    Call(route: "getDocument", target: documents + "/a", failure: unreadable, status: 403),
    Call(route: "getDocument", target: documents + "/a", failure: damaged, status: 503),
    Call(route: "patchDocument", target: documents + "/a", body: "{}", type: merge, failure: damaged, status: 503),
    Call(route: "getDocument", target: "/v1/partitions/a%0Ab/collections/c/documents/a", status: 422),
    Call(route: "getDocumentReceipts", target: documents + "/a/receipts", status: 200),
    Call(route: "getDocumentReceipts", target: documents + "/b/receipts", status: 404),
    Call(route: "getDocumentReceipts", target: documents + "/a/receipts", failure: unreadable, status: 403),
    Call(route: "getDocumentReceipts", target: "/v1/partitions/a%0Ab/collections/c/documents/a/receipts", status: 422),
    Call(route: "watchDocumentReceipts", target: documents + "/b/receipts/watch", status: 404),
    Call(route: "watchDocumentReceipts", target: documents + "/a/receipts/watch", failure: unreadable, status: 403),
    Call(
      route: "watchDocumentReceipts", target: "/v1/partitions/a%0Ab/collections/c/documents/a/receipts/watch",
      status: 422),
    Call(
      route: "watchPartitionReceipts", target: "/v1/partitions/p/receipts/watch",
      failure: NodeError(.notFound, "nothing of it is here"), status: 404),
    Call(
      route: "watchPartitionReceipts", target: "/v1/partitions/p/receipts/watch", failure: unreadable, status: 403),
    Call(route: "watchPartitionReceipts", target: "/v1/partitions/a%0Ab/receipts/watch", status: 422),
    Call(route: "getPartitionReceipts", target: "/v1/partitions/p/receipts?ask=true", status: 200),
    Call(
      route: "getPartitionReceipts", target: "/v1/partitions/p/receipts",
      failure: NodeError(.notFound, "nothing of p is here"), status: 404),
    Call(route: "getPartitionReceipts", target: "/v1/partitions/p/receipts", failure: unreadable, status: 403),
    Call(route: "getPartitionReceipts", target: "/v1/partitions/a%0Ab/receipts", status: 422),
    Call(route: "patchDocument", target: documents + "/a", body: "{}", type: merge, status: 200),
    Call(route: "patchDocument", target: documents + "/b", body: "{}", type: merge, status: 404),
    Call(route: "patchDocument", target: documents + "/b?upsert=true", body: "{}", type: merge, status: 201),
    Call(
      route: "patchDocument", target: documents + "/a", body: "{}", type: merge, headers: ["If-Match: \"x\""],
      status: 412),
    Call(route: "patchDocument", target: documents + "/a", body: "{}", type: merge, failure: forbidden, status: 403),
    Call(route: "patchDocument", target: documents + "/a", body: large, type: merge, status: 413),
    Call(route: "patchDocument", target: documents + "/a", body: "{\"n\":1}", status: 422),
    Call(route: "insertDocument", target: documents, body: "{\"_id\":\"i\"}", status: 201),
    Call(route: "insertDocument", target: documents, body: "{\"_id\":\"i\"}", status: 412),
    Call(route: "insertDocument", target: documents, body: "{}", headers: ["Idempotency-Key: k"], status: 201),
    Call(route: "insertDocument", target: documents, body: "{}", headers: ["Idempotency-Key: k"], status: 200),
    Call(route: "insertDocument", target: documents, body: "{\"n\":1}", headers: ["Idempotency-Key: k"], status: 422),
    Call(route: "insertDocument", target: documents, body: "{}", failure: forbidden, status: 403),
    Call(route: "insertDocument", target: documents, body: large, status: 413),
    Call(route: "insertDocument", target: documents, body: "{\"_id\":[]}", status: 422),
    Call(route: "deleteDocument", target: documents + "/b", headers: ["If-Match: \"x\""], status: 412),
    Call(route: "deleteDocument", target: documents + "/b", failure: forbidden, status: 403),
    Call(route: "deleteDocument", target: "/v1/partitions/a%0Ab/collections/c/documents/b", status: 422),
    Call(route: "deleteDocument", target: documents + "/b", status: 200),
    Call(route: "deleteDocument", target: documents + "/b", status: 404),
  ]

  private static let conflicts = "/v1/partitions/p/conflicts"
  private static let resolve = conflicts + "/63.0661.v1.1/resolve"
  private static let conflictCalls: [Call] = [
    Call(route: "listConflicts", target: conflicts + "?limit=1000", status: 200),
    Call(route: "listConflicts", target: conflicts + "?limit=0", status: 400),
    Call(route: "listConflicts", target: conflicts, failure: unreadable, status: 403),
    Call(route: "listConflicts", target: "/v1/partitions/a%0Ab/conflicts", status: 422),
    Call(route: "resolveConflict", target: resolve, body: #"{"keep":true}"#, status: 200),
    Call(
      route: "resolveConflict", target: resolve, body: #"{"keep":true}"#,
      failure: NodeError(.notFound, "there is none"),
      status: 404),
    Call(
      route: "resolveConflict", target: resolve, body: #"{"keep":true}"#,
      failure: NodeError(.preconditionFailed, "changed"),
      status: 412),
    Call(route: "resolveConflict", target: resolve, body: #"{"keep":true}"#, failure: forbidden, status: 403),
    Call(route: "resolveConflict", target: resolve, body: large, status: 413),
    Call(route: "resolveConflict", target: resolve, body: #"{"keep":true,"take":[1]}"#, status: 422),
  ]

  private static func transaction(_ operation: String) -> String { "{\"operations\":[\(operation)]}" }
  private static let put = #"{"op":"put","collection":"c","id":"t","document":{}}"#

  private static let bulkCalls: [Call] = [
    Call(route: "transact", target: "/v1/partitions/p/transaction", body: transaction(put), status: 200),
    Call(
      route: "transact", target: "/v1/partitions/p/transaction",
      body: transaction(#"{"op":"delete","collection":"c","id":"none"}"#), status: 404),
    Call(
      route: "transact", target: "/v1/partitions/p/transaction",
      body: transaction(#"{"op":"delete","collection":"c","id":"t","ifMatch":"x"}"#), status: 412),
    Call(
      route: "transact", target: "/v1/partitions/p/transaction", body: transaction(put), failure: forbidden, status: 403
    ),
    Call(
      route: "transact", target: "/v1/partitions/p/transaction", body: transaction(put),
      failure: NodeError(.tooLarge, "one change holds less"), status: 413),
    Call(route: "transact", target: "/v1/partitions/p/transaction", body: "{}", status: 422),
    Call(route: "importDocuments", target: collection + "/import", body: "{}", type: lines, status: 200),
    Call(
      route: "importDocuments", target: collection + "/import",
      body: String(repeating: " ", count: ServerLimit.importBodyBytes + 1), type: lines, status: 413),
    Call(
      route: "importDocuments", target: collection + "/import",
      body: String(repeating: "{}\n", count: BulkLimit.requests + 1), type: lines, status: 422),
    Call(route: "findDocuments", target: collection + "/find", body: "{}", status: 200),
    Call(route: "findDocuments", target: collection + "/find", body: "{\"where\":1}", status: 422),
    Call(route: "findDocuments", target: collection + "/find", body: "{}", failure: unreadable, status: 403),
    Call(route: "findDocuments", target: collection + "/find", body: "{}", failure: excessive, status: 413),
    Call(route: "watchDocuments", target: collection + "/watch", failure: excessive, status: 413),
    Call(route: "exportPartition", target: "/v1/partitions/a%0Ab/documents", status: 422),
    Call(route: "exportCollection", target: "/v1/partitions/a%0Ab/collections/c/documents", status: 422),
    Call(route: "watchDocuments", target: collection + "/watch", failure: unreadable, status: 403),
    Call(route: "watchDocuments", target: collection + "/watch?limit=-1", status: 422),
    Call(route: "exportPartition", target: "/v1/partitions/p/documents", status: 200),
    Call(route: "exportPartition", target: "/v1/partitions/p/documents", failure: unreadable, status: 403),
    Call(route: "exportCollection", target: documents, status: 200),
    Call(route: "exportCollection", target: documents, failure: unreadable, status: 403),
    Call(route: "listDamaged", target: "/v1/damaged", status: 200),
  ]

  private static let nodeCalls: [Call] = [
    Call(route: "getStatus", target: "/v1/status", status: 200),
    Call(route: "listPeers", target: "/v1/peers", status: 200),
    Call(route: "listDevices", target: "/v1/devices", status: 200),
    Call(route: "listPartitions", target: "/v1/partitions", status: 200),
    Call(route: "runDoctor", target: "/v1/doctor", status: 200),
    Call(route: "getMetrics", target: "/metrics", status: 200),
    Call(route: "getDescription", target: "/v1/openapi.json", status: 200),
    Call(route: "listSubscriptions", target: "/v1/subscriptions", status: 200),
    Call(route: "subscribe", target: "/v1/subscriptions/p", status: 200),
    Call(route: "unsubscribe", target: "/v1/subscriptions/p", status: 200),
    Call(
      route: "unsubscribe", target: "/v1/subscriptions/p",
      failure: NodeError(.notFound, "there is no such subscription"),
      status: 404),
    Call(route: "unsubscribe", target: "/v1/subscriptions/" + String(repeating: "x", count: 256), status: 422),
    Call(route: "subscribe", target: "/v1/subscriptions/" + String(repeating: "x", count: 256), status: 422),
    Call(route: "invite", target: "/v1/invitations", body: "{\"user\":\"ann\"}", status: 200),
    Call(route: "invite", target: "/v1/invitations", body: "{\"user\":\"ann\"}", isLoopback: true, status: 403),
    Call(route: "invite", target: "/v1/invitations", body: "{\"user\":1}", status: 422),
    Call(route: "listInvitations", target: "/v1/invitations", status: 200),
    Call(route: "cancelInvitation", target: "/v1/invitations/1", status: 200),
    Call(route: "cancelInvitation", target: "/v1/invitations/9", status: 404),
    Call(
      route: "cancelInvitation", target: "/v1/invitations/1",
      failure: NodeError(.unprocessable, "invitation 1 was used already"), status: 422),
    Call(route: "backUp", target: "/v1/backup", body: "{\"path\":\"/b\"}", status: 200),
    Call(route: "backUp", target: "/v1/backup", body: "{\"path\":\"/b\"}", isLoopback: true, status: 403),
    Call(route: "backUp", target: "/v1/backup", body: "{\"path\":\"b\"}", status: 422),
    Call(route: "listLinks", target: "/v1/links", status: 200),
    Call(route: "useLinks", target: "/v1/links", body: #"{"use": "satellite"}"#, status: 200),
    Call(route: "useLinks", target: "/v1/links", body: "{}", status: 422),
    Call(route: "safeToWipe", target: "/v1/safe-to-wipe", status: 200),
    Call(route: "safeToWipe", target: "/v1/safe-to-wipe?ask=true&devices=3&milliseconds=1000", status: 200),
    Call(route: "listRefused", target: "/v1/forwarding/refused", status: 200),
    Call(
      route: "listRefused", target: "/v1/forwarding/refused",
      failure: NodeError(.unprocessable, "this node does not forward"), status: 422),
    Call(route: "sendForwarding", target: "/v1/forwarding/send", status: 200),
    Call(
      route: "sendForwarding", target: "/v1/forwarding/send",
      failure: NodeError(.unprocessable, "this node does not forward"), status: 422),
  ]

  /// A change of rights: done, refused by the node, not found, and a body that is none.
  private static let rightsCalls: [Call] =
    [
      ("grant", "/v1/grants", #"{"who":"everyone","level":"read","pattern":"*"}"#),
      ("revoke", "/v1/revocations", #"{"device":"bridge","compromised":true}"#),
      ("retire", "/v1/retirements", #"{"device":"bridge"}"#), ("raise", "/v1/raises", #"{"what":"bridge"}"#),
      ("promote", "/v1/promotions", #"{"device":"bridge"}"#),
    ].flatMap { route, target, body in
      [
        Call(route: route, target: target, body: body, status: 200),
        Call(route: route, target: target, body: body, isLoopback: true, status: 403),
        Call(route: route, target: target, body: body, failure: NodeError(.notFound, "no such device"), status: 404),
        Call(route: route, target: target, body: "{}", status: 422),
      ]
    } + [
      Call(route: "listRules", target: "/v1/rules", status: 200),
      Call(route: "listPermissions", target: "/v1/permissions", status: 200),
      Call(
        route: "listPermissions", target: "/v1/permissions?who=device:x",
        failure: NodeError(.notFound, "no such device"),
        status: 404),
      Call(
        route: "listPermissions", target: "/v1/permissions?partition=" + String(repeating: "x", count: 256), status: 422
      ),
    ]

  @Test("every status that the description has for a request is one that it answers, and none other of its kind")
  func statuses() throws {
    let server = try TestServer(loopback: LoopbackAddress(port: 0))
    // WatchTests: their answers have no end.
    var seen: Set<String> = ["watchDocuments 200", "watchDocumentReceipts 200", "watchPartitionReceipts 200"]
    for call in Self.documentCalls + Self.conflictCalls + Self.bulkCalls + Self.nodeCalls + Self.rightsCalls {
      let route = try #require(allRoutes.first { $0.name == call.route })
      server.node.fail(call.failure)
      let answer =
        call.isLoopback
        ? try server.askLoopback(route.method.rawValue, call.target, call.body)
        : try server.ask(route.method.rawValue, call.target, call.body, type: call.type, headers: call.headers)
      #expect(answer.status == call.status, "\(call.route) \(call.target): \(answer.text.prefix(200))")
      check(answer, route)
      seen.insert("\(call.route) \(answer.status)")
    }
    let paths = try #require(openAPI(allRoutes).asMap?["paths"]?.asMap)
    for route in allRoutes {
      let operation = paths[Text(route.template)]?.asMap?[Text(route.method.rawValue.lowercased())]?.asMap
      let described = Set((operation?["responses"]?.asMap?.entries ?? []).map(\.key.string))
      let own = Set((route.statuses + route.refusals.map(\.status)).map { "\($0)" })
      let answered = Set(
        seen.filter { $0.hasPrefix(route.name + " ") }.map { String($0.dropFirst(route.name.count + 1)) })
      #expect(own.isSubset(of: answered), "\(route.name) never answers \(own.subtracting(answered).sorted())")
      #expect(answered.isSubset(of: described), "\(route.name) answers \(answered.subtracting(described).sorted())")
    }
  }

  /// Headers and form that belong to an answer of this kind.
  private func check(_ answer: Answer, _ route: Route) {
    #expect(answer.headers["cache-control"] == "no-store" && answer.headers["x-content-type-options"] == "nosniff")
    switch answer.status {
    case 304: #expect(answer.body.isEmpty && answer.headers["etag"] != nil)
    case 200..<300: #expect(answer.headers["content-type"] == route.result.mediaType.rawValue)
    default:
      #expect(answer.headers["content-type"] == "application/problem+json")
      #expect(answer.json["status"] == .int(Int64(answer.status)))
      let kind = Problem.Kind.allCases.first {
        answer.json["type"] == .string(Text("urn:seamesh:problem:\($0.rawValue)"))
      }
      #expect(kind?.status == answer.status && answer.json["title"] == kind.map { .string(Text($0.title)) })
      #expect(!answer.detail.isEmpty)
    }
  }

  @Test("every request is refused alike where the node is stopping or its disk is damaged", arguments: [503, 500])
  func troubles(status: Int) throws {
    let server = try TestServer()
    server.node.fail(NodeError(status == 503 ? .stopping : .failed, "for this reason"))
    for (route, target, body) in [
      ("getStatus", "/v1/status", nil), ("getDocument", Self.documents + "/a", nil),
      ("putDocument", Self.documents + "/a", "{}"), ("exportCollection", Self.documents, nil),
      ("findDocuments", Self.collection + "/find", "{}"), ("watchDocuments", Self.collection + "/watch", nil),
      ("backUp", "/v1/backup", "{\"path\":\"/b\"}"),
    ] as [(String, String, String?)] {
      let method = try #require(allRoutes.first { $0.name == route }?.method.rawValue)
      let answer = try server.ask(method, target, body)
      #expect(answer.status == status && answer.detail == "for this reason", "\(route)")
    }
  }
}
