import Glibc
import LocalAPI
import Replication
import Seamesh
import Wire

private let idType = OptionSpecification(
  "id-type", .choice("TYPE", NodePath.idTypes), "type of ID")
private let ifMatch = OptionSpecification(
  "if-match", .text("ETAG"), "only if the document still has this ETag; * is any")
private let idDetail =
  "An ID that begins with { or \" is Extended JSON, such as '{\"$oid\":\"5ed554a47527930d67194feb\"}'; any other is a "
  + "string. --id-type names a type instead."

let documentLimits =
  "A document has at most \(DocumentLimits.bodyBytes >> 20) MiB as it is stored and \(ServerLimit.documentBodyBytes >> 20) MiB as JSON, "
  + "and \(Value.depthLimit) levels; its keys have at most \(Value.keyByteLimit) bytes, its ID \(ServerLimit.idBytes). One change writes at "
  + "most \(Run.operationLimit) values: a document of more is written in several steps."

let keepAbsentOption = OptionSpecification("keep-absent", .none, "keep the stored fields that a document leaves out")

let putVerb = Verb(
  "put", "store a document",
  details: [
    "Reads one JSON object from FILE, or standard input where FILE is - or missing. Where only one of ID and FILE is "
      + "given, it is the FILE if it names one; --id and --file say which is meant. Without ID the document's own _id is "
      + "taken, or one is made.", idDetail,
    "The document replaces the one that is there: fields that it leaves out are taken away. Only what differs is "
      + "recorded, so that fields which others change meanwhile stay as they made them.", documentLimits,
  ],
  operands: [
    Operand("PARTITION", kind: .partition), Operand("COLLECTION", kind: .collection), Operand("ID", .optional),
    Operand("FILE", .optional, kind: .file),
  ],
  options: [
    OptionSpecification("id", .text("ID"), "the document's id; what else is given is FILE"),
    OptionSpecification("file", .file("FILE"), "where the document is; what else is given is ID"), idType, ifMatch,
    OptionSpecification("new", .none, "only if there is no such document yet"), keepAbsentOption,
  ],
  examples: [
    .init("seamesh put agency=WildAid BoardingReports r1 report.json", "Stores report.json as the document r1"),
    .init("echo '{\"name\":\"Ann\"}' | seamesh put all-users User", "Stores a document with a new id"),
  ]
) { invocation, context throws(Failure) in
  let (id, file) = try putOperands(invocation, isInputGiven: isInputGiven)
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
    let query = NodePath.query([("keepAbsent", invocation.has(keepAbsentOption.name) ? "true" : nil)])
    request = .init(
      method: "PUT", target: NodePath.document(partition, collection, id: segment) + query, body: body,
      headers: (isNew ? ["If-None-Match: *"] : []) + ifMatchHeader(invocation))
  } else {
    for option in [ifMatch, keepAbsentOption] where invocation.has(option.name) {
      throw .usage("--\(option.name) is for a document that is there: name it by ID, or by an _id of its own")
    }
    request = .init(method: "POST", target: NodePath.collection(partition, collection) + "/documents", body: body)
  }
  try report(context.client.ask(request), context)
}

/// ID and FILE. `--id` and `--file` say which is meant; one operand alone is the file if it is `-` or names one.
func putOperands(
  _ invocation: Invocation, isInputGiven: () -> Bool
) throws(Failure) -> (id: String?, file: String) {
  let (id, file) = (invocation["id"], invocation["file"])
  guard id?.isEmpty != true, file?.isEmpty != true else { throw .usage("--id and --file are not empty") }
  let operands = Array(invocation.operands.dropFirst(2))
  let room = 2 - (id == nil ? 0 : 1) - (file == nil ? 0 : 1)
  guard operands.count <= room else {
    throw .usage("\(shown(operands[room])) is one argument too many beside --id or --file")
  }
  switch (id, file) {
  case (nil, nil) where operands.count == 1: return try idOrFile(operands[0], isInputGiven)
  case (nil, nil): return (operands.first, operands.count == 2 ? operands[1] : "-")
  case (nil, let file?): return (operands.first, file)
  case (let id?, let file): return (id, file ?? operands.first ?? "-")
  }
}

/// A mistyped name of a file must not become the id of a document that is then read from wherever standard input leads.
private func idOrFile(_ only: String, _ isInputGiven: () -> Bool) throws(Failure) -> (id: String?, file: String) {
  if only == "-" { return (nil, only) }
  if isFile(only) {
    // A path or NAME.json is a file to everybody; r1 may be the id of what is piped, beside a file that nobody thought of.
    guard only.contains("/") || only.hasSuffix(".json") || !isInputGiven() else {
      throw .usage(
        "\(shown(only)) is a file, and standard input is given as well: say --file=\(shown(only)) or --id=\(shown(only))"
      )
    }
    return (nil, only)
  }
  guard !only.hasSuffix(".json") else {
    throw .usage("there is no file \(shown(only)); if it is the document's id, say --id=\(shown(only))")
  }
  return (only, "-")
}

private func ownID(_ body: [UInt8], _ file: String) throws(Failure) -> Value? {
  do throws(JSONError) {
    return try ExtendedJSON.parseMap(body, limits: .ofDocumentBody)["_id"]
  } catch {
    throw Failure(.failed, "\(file == "-" ? "standard input" : shown(file)) is not a document. \(error.message)")
  }
}

private func ifMatchHeader(_ invocation: Invocation) -> [String] {
  guard let etag = invocation[ifMatch.name] else { return [] }
  return ["If-Match: " + (etag == "*" ? etag : "\"\(shown(etag).replacing("\"", with: ""))\"")]
}

/// What became of a write.
private func report(_ answer: Answer, _ context: Context) throws(Failure) {
  if context.isJSON { return context.terminal.write(answer.body) }
  let map = try answer.json()
  let id = shown(map.text("id"))
  let etag = map["etag"].map { $0 == .null ? "" : ", etag \(shown($0.shownText))" } ?? ""
  let what = map.flag("created") ? "created" : map["dot"] == .null ? "unchanged" : "changed"
  context.terminal.print("\(what) \(id) (\(map.text("safety"))\(etag))")
}

let getVerb = Verb(
  "get", "show a document", details: [idDetail],
  operands: [Operand("PARTITION", kind: .partition), Operand("COLLECTION", kind: .collection), Operand("ID")],
  options: [idType, OptionSpecification("etag", .none, "show the document's ETag instead, for --if-match")],
  examples: [
    .init(
      "seamesh get agency=WildAid BoardingReports 5ed554a47527930d67194feb --id-type=oid",
      "Shows a boarding report")
  ]
) { invocation, context throws(Failure) in
  let request = NodeClient.Request(target: try documentTarget(invocation))
  let answer = try context.ask(request, about: invocation.required(0))
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
  operands: [Operand("PARTITION", kind: .partition), Operand("COLLECTION", kind: .collection), Operand("ID")],
  options: [idType, ifMatch],
  examples: [.init("seamesh delete agency=WildAid DutyChange d7", "Deletes the document d7")]
) { invocation, context throws(Failure) in
  let request = NodeClient.Request(
    method: "DELETE", target: try documentTarget(invocation), headers: ifMatchHeader(invocation))
  let answer = try context.ask(request, about: invocation.required(0))
  if context.isJSON { return context.terminal.write(answer.body) }
  context.terminal.print("deleted \(shown(try answer.json().text("id")))")
}

let patchVerb = Verb(
  "patch", "change fields of a document",
  details: [
    "JSON is a merge patch (RFC 7396: null removes a field), or MongoDB update operators if its keys begin with $. "
      + "--set and --unset name fields by dotted paths instead.",
    "A document that is not there is not made, unless --upsert says so.", idDetail, documentLimits,
  ],
  operands: [
    Operand("PARTITION", kind: .partition), Operand("COLLECTION", kind: .collection), Operand("ID"),
    Operand("JSON", .optional),
  ],
  options: [
    OptionSpecification("set", .text("PATH=JSON"), "set a field", repeats: true),
    OptionSpecification("unset", .text("PATH"), "remove a field", repeats: true),
    OptionSpecification("upsert", .none, "make the document where there is none"), idType, ifMatch,
  ],
  examples: [
    .init("seamesh patch agency=WildAid BoardingReports r1 '{\"draft\":false}'", "Changes one field"),
    .init(
      "seamesh patch agency=WildAid BoardingReports r1 --set=vessel.name='\"Sirena\"' --unset=notes",
      "Sets one field and removes another"),
  ]
) { invocation, context throws(Failure) in
  let patch = try Patch(json: invocation.operand(3), set: invocation.all("set"), unset: invocation.all("unset"))
  if let named = patch.id, let id = try? DocumentID.parse(segment: Text(try documentSegment(invocation))), named != id {
    throw .usage("the patch has another _id than ID says, and a document's _id never changes")
  }
  let query = NodePath.query([("upsert", invocation.has("upsert") ? "true" : nil)])
  let request = NodeClient.Request(
    method: "PATCH", target: try documentTarget(invocation) + query, body: Array(patch.json.utf8),
    contentType: patch.contentType, headers: ifMatchHeader(invocation))
  let answer = try context.ask(request, about: invocation.required(0))
  try report(answer, context)
}

private func documentTarget(_ invocation: Invocation) throws(Failure) -> String {
  NodePath.document(invocation.required(0), invocation.required(1), id: try documentSegment(invocation))
}

private func documentSegment(_ invocation: Invocation) throws(Failure) -> String {
  try NodePath.id(invocation.required(2), type: invocation["id-type"])
}
