import Replication
import Seamesh
import Wire

private let queryOptions = [
  OptionSpecification("filter", .text("JSON"), "MongoDB-style filter; everything where it is missing"),
  OptionSpecification("sort", .text("JSON"), "fields with 1 or -1, such as {\"date\":-1}"),
  OptionSpecification("limit", .text("N"), "at most N documents; 0 is all that one result may hold"),
  OptionSpecification("skip", .text("N"), "leave out the first N"),
  OptionSpecification("projection", .text("JSON"), "which fields to show"),
]

private let resultMebibytes = ReadLimits().resultBytes >> 20

private let resultLimits =
  "One result holds \(ReadLimits().resultDocuments) documents, or more where --limit says so, and \(resultMebibytes) MiB of memory, "
  + "about six bytes for each byte of JSON: "
  + "some 540 reports of 2.6 kB, or 520 that are sorted. --projection, --filter and --limit make it smaller, and seamesh "
  + "export has no such limit."

private let filterOperators =
  "Operators of a filter: \(Filter.operators.joined(separator: " ")). Those of MongoDB that are not here, such as $regex, "
  + "$elemMatch, $size, $all and $type, are refused; $contains looks for a text within a text, with $fold without regard to case "
  + "(c) and diacritics (d)."

let findVerb = Verb(
  "find", "search for documents",
  details: [
    "Shows one document on each line, as Extended JSON; on a terminal those that do not fit have several. Ends with status 1 where documents are damaged on this device, which it names; "
      + "all others are shown.",
    filterOperators, resultLimits,
  ],
  operands: [Operand("PARTITION", kind: .partition), Operand("COLLECTION", kind: .collection)], options: queryOptions,
  examples: [
    .init(
      "seamesh find agency=WildAid BoardingReports --filter='{\"vessel.name\":\"Sirena\"}' --sort='{\"date\":-1}' --limit=10",
      "Shows the ten latest reports on one vessel")
  ]
) { invocation, context throws(Failure) in
  var members: [String] = []
  for name in ["filter", "sort", "projection"] {
    // The text itself goes into the body: the order of sort fields means something.
    if let text = try jsonOption(name, invocation) { members.append("\"\(name)\":\(text)") }
  }
  for name in ["limit", "skip"] { if let count = try invocation.count(name) { members.append("\"\(name)\":\(count)") } }
  let answer = try context.client.ask(
    .init(
      method: "POST", target: NodePath.collection(invocation.required(0), invocation.required(1)) + "/find",
      body: Array("{\(members.joined(separator: ","))}".utf8), isTyped: true))
  let found = try answer.json()
  let documents = found["documents"]?.items ?? []
  for document in documents { context.terminal.print(text(of: document, context)) }
  if found["oneState"] == .bool(false) {
    context.terminal.warn(
      "some of these documents were written while the others were read: ask again for all at one moment")
  }
  if let damaged = found["damaged"]?.items, !damaged.isEmpty {
    throw damageFailure(damaged, "may belong to the result and")
  }
  if documents.isEmpty { try context.warnIfLacking(invocation.required(0)) }
}

/// On one line, but for a person at a terminal where it does not fit on one.
private func text(of document: Value, _ context: Context) -> String {
  let line = ExtendedJSON.text(document)
  guard !context.isJSON, let columns = context.terminal.columns, line.utf8.count > columns else { return line }
  return ExtendedJSON.text(document, pretty: true)
}

let watchVerb = Verb(
  "watch", "show a search's result, and each change of it as it comes",
  details: [
    "Shows the documents there are, one on each line behind the word snapshot, then each insert, update and delete with the "
      + "position in the result. With --json each event is one line. Ends when it is interrupted.",
    "One result holds \(ReadLimits().resultDocuments) documents and \(resultMebibytes) MiB of memory, about six bytes for each byte of "
      + "JSON, some 520 reports of 2.6 kB; all that are watched on a node hold \(ReadLimits().allLiveBytes >> 20) MiB together. "
      + "--projection, --filter and --limit make it smaller.",
  ],
  operands: [Operand("PARTITION", kind: .partition), Operand("COLLECTION", kind: .collection)], options: queryOptions,
  examples: [
    .init("seamesh watch conversation=7 ChatMessage --sort='{\"timestamp\":1}'", "Shows a conversation as it goes on")
  ]
) { invocation, context throws(Failure) in
  var parameters: [(name: String, value: String?)] = []
  for name in ["filter", "sort", "projection"] { parameters.append((name, try jsonOption(name, invocation))) }
  for name in ["limit", "skip"] { parameters.append((name, try invocation.count(name).map { "\($0)" })) }
  let target =
    NodePath.collection(invocation.required(0), invocation.required(1)) + "/watch" + NodePath.query(parameters)
  var isFirst = true
  try followEvents(target, context) { event in
    print(event, context)
    // Asked once: what is empty may come of a mistyped name, and whether it does is not what was asked.
    if isFirst, snapshot(event)?.isEmpty == true { try? context.warnIfLacking(invocation.required(0)) }
    isFirst = false
  }
}

private func print(_ event: EventStream.Event, _ context: Context) {
  if context.isJSON {
    let id = event.id.map { ",\"cursor\":\(ExtendedJSON.text(.string(Text($0))))" } ?? ""
    context.terminal.print("{\"event\":\"\(event.name)\"\(id),\"data\":\(event.data)}")
  } else if let documents = snapshot(event) {
    context.terminal.print("\(context.terminal.styled(event.name, .bold)) \(counted(documents.count, "document"))")
    for document in documents { context.terminal.print("  " + ExtendedJSON.text(document)) }
  } else {
    context.terminal.print("\(context.terminal.styled(event.name, .bold)) \(event.data)")
  }
}

/// Nil where it is another event.
private func snapshot(_ event: EventStream.Event) -> [Value]? {
  guard event.name == "snapshot" else { return nil }
  return (try? ExtendedJSON.parseMap(Array(event.data.utf8)))?["documents"]?.items
}

/// What was shown is not all there is.
func damageFailure(_ ids: [Value], _ clause: String) -> Failure {
  let names = ids.prefix(8).map { ExtendedJSON.text($0) }.joined(separator: ", ")
  let rest = ids.count > 8 ? " and \(ids.count - 8) more" : ""
  return Failure(
    .failed,
    "documents that \(clause) are damaged on this device: \(names)\(rest); seamesh doctor says what to do")
}

/// The text of an option that must be JSON.
private func jsonOption(_ name: String, _ invocation: Invocation) throws(Failure) -> String? {
  guard let text = invocation[name] else { return nil }
  _ = try typedJSON(text, "--\(name)")
  return text
}
