import Glibc
import LocalAPI
import Replication
import Wire

private let idType = OptionSpecification(
  "id-type", .choice("TYPE", NodePath.idTypes), "type of ID")
private let ifMatch = OptionSpecification("if-match", .text("ETAG"), "only if the document still has this ETag")
private let idDetail =
  "An ID that begins with { or \" is Extended JSON, such as '{\"$oid\":\"5ed554a47527930d67194feb\"}'; any other is a "
  + "string. --id-type names a type instead."

let putVerb = Verb(
  "put", "store a document",
  details: [
    "Reads one JSON object from FILE, or standard input where FILE is - or missing. Where only one of ID and FILE is "
      + "given, it is the FILE if it names one. Without ID the document's own _id is taken, or one is made.", idDetail,
    "Only real differences are recorded, and fields that the document leaves out stay as they are.",
  ],
  operands: [
    Operand("PARTITION"), Operand("COLLECTION"), Operand("ID", .optional), Operand("FILE", .optional, kind: .file),
  ],
  options: [
    idType, ifMatch, OptionSpecification("new", .none, "only if there is no such document yet"),
    OptionSpecification("erase-absent", .none, "erase the fields that the document leaves out"),
  ],
  examples: [
    .init("seamesh put agency=WildAid BoardingReports r1 report.json", "Stores report.json as the document r1"),
    .init("echo '{\"name\":\"Ann\"}' | seamesh put all-users User", "Stores a document with a new id"),
  ]
) { invocation, context throws(Failure) in
  let (id, file) = putOperands(invocation)
  if file == "-", isatty(STDIN_FILENO) == 1 {
    context.terminal.warn("reading the document from the terminal; end it with Ctrl-D")
  }
  let body = try InputFile(file).readAll(limit: ServerLimit.documentBodyBytes)
  let (partition, collection) = (invocation.required(0), invocation.required(1))
  let segment: String?
  if let id {
    segment = try NodePath.id(id, type: invocation["id-type"])
  } else {
    segment = try ownID(body, file).map { DocumentID.segment($0).string }
  }
  let isNew = invocation.has("new")
  var request: NodeClient.Request
  if let segment {
    let query = NodePath.query([("eraseAbsent", invocation.has("erase-absent") ? "true" : nil)])
    request = .init(
      method: "PUT", target: NodePath.document(partition, collection, id: segment) + query, body: body,
      headers: (isNew ? ["If-None-Match: *"] : []) + ifMatchHeader(invocation))
  } else {
    request = .init(method: "POST", target: NodePath.collection(partition, collection) + "/documents", body: body)
  }
  try report(context.client.ask(request), context)
}

/// ID and FILE. One alone is the file if it is `-` or names one.
func putOperands(_ invocation: Invocation) -> (id: String?, file: String) {
  switch (invocation.operand(2), invocation.operand(3)) {
  case (let id?, let file?): (id, file)
  case (let only?, nil): only == "-" || isFile(only) ? (nil, only) : (only, "-")
  default: (nil, "-")
  }
}

private func ownID(_ body: [UInt8], _ file: String) throws(Failure) -> Value? {
  do throws(JSONError) {
    return try ExtendedJSON.parseMap(body, limits: ExtendedJSON.Limits(byteCount: ServerLimit.documentBodyBytes))["_id"]
  } catch {
    throw Failure(.failed, "\(file == "-" ? "standard input" : shown(file)) is not a document. \(error.message)")
  }
}

private func ifMatchHeader(_ invocation: Invocation) -> [String] {
  invocation["if-match"].map { ["If-Match: \"\(shown($0).replacing("\"", with: ""))\""] } ?? []
}

/// What became of a write.
private func report(_ answer: Answer, _ context: Context) throws(Failure) {
  if context.isJSON { return context.terminal.write(answer.body) }
  let map = try answer.json()
  let id = shown(map.text("id"))
  let etag = map["etag"].map { $0 == .null ? "" : ", etag \(shown($0.shownText))" } ?? ""
  let what = map.flag("created") ? "created" : map["dot"] == .null ? "unchanged:" : "written:"
  context.terminal.print("\(what) \(id) (\(map.text("safety"))\(etag))")
}

let getVerb = Verb(
  "get", "show a document", details: [idDetail],
  operands: [Operand("PARTITION"), Operand("COLLECTION"), Operand("ID")],
  options: [idType, OptionSpecification("etag", .none, "show the document's ETag instead, for --if-match")],
  examples: [
    .init(
      "seamesh get agency=WildAid BoardingReports 5ed554a47527930d67194feb --id-type=oid",
      "Shows a boarding report")
  ]
) { invocation, context throws(Failure) in
  let answer = try context.client.ask(.init(target: try documentTarget(invocation)))
  if invocation.has("etag") {
    let etag = answer.etag ?? ""
    context.terminal.print(context.isJSON ? ExtendedJSON.object([("etag", .string(Text(etag)))]) : etag)
  } else if context.isJSON || !context.terminal.isOutputTerminal {
    context.terminal.write(answer.body)
  } else {
    context.terminal.print(ExtendedJSON.text(.map(try answer.json()), pretty: true))
  }
}

let deleteVerb = Verb(
  "delete", "delete a document", details: [idDetail],
  operands: [Operand("PARTITION"), Operand("COLLECTION"), Operand("ID")], options: [idType, ifMatch],
  examples: [.init("seamesh delete agency=WildAid DutyChange d7", "Deletes the document d7")]
) { invocation, context throws(Failure) in
  let request = NodeClient.Request(
    method: "DELETE", target: try documentTarget(invocation), headers: ifMatchHeader(invocation))
  let answer = try context.client.ask(request)
  if context.isJSON { return context.terminal.write(answer.body) }
  context.terminal.print("deleted \(shown(try answer.json().text("id")))")
}

let patchVerb = Verb(
  "patch", "change fields of a document",
  details: [
    "JSON is a merge patch (RFC 7396: null removes a field), or MongoDB update operators if its keys begin with $. "
      + "--set and --unset name fields by dotted paths instead.", idDetail,
  ],
  operands: [Operand("PARTITION"), Operand("COLLECTION"), Operand("ID"), Operand("JSON", .optional)],
  options: [
    OptionSpecification("set", .text("PATH=JSON"), "set a field", repeats: true),
    OptionSpecification("unset", .text("PATH"), "remove a field", repeats: true), idType, ifMatch,
  ],
  examples: [
    .init("seamesh patch agency=WildAid BoardingReports r1 '{\"draft\":false}'", "Changes one field"),
    .init(
      "seamesh patch agency=WildAid BoardingReports r1 --set=vessel.name='\"Sirena\"' --unset=notes",
      "Sets one field and removes another"),
  ]
) { invocation, context throws(Failure) in
  let patch = try Patch(json: invocation.operand(3), set: invocation.all("set"), unset: invocation.all("unset"))
  let request = NodeClient.Request(
    method: "PATCH", target: try documentTarget(invocation), body: Array(patch.json.utf8),
    contentType: patch.contentType, headers: ifMatchHeader(invocation))
  try report(context.client.ask(request), context)
}

private func documentTarget(_ invocation: Invocation) throws(Failure) -> String {
  NodePath.document(
    invocation.required(0), invocation.required(1),
    id: try NodePath.id(invocation.required(2), type: invocation["id-type"]))
}
