import Replication
import Seamesh

let receiptsVerb = Verb(
  "receipts", "show how safe a document is, or a whole partition",
  details: [
    "Who holds it follows from what devices sign themselves: each says now and then what it holds, and words travel from node "
      + "to node. Small changes are spoken of when somebody asks: --ask asks the peers in reach first.",
    "A document is as safe as the changes that it stands on, a deleted one as everything in its partition. The word of a "
      + "device that was ended, or of which two histories are known, is shown and not counted. A relay is a member whose "
      + "role is relay.",
    "An ID that begins with { or \" is Extended JSON; any other is a string. --id-type names a type instead.",
  ],
  operands: [
    Operand("PARTITION", kind: .partition), Operand("COLLECTION", .optional, kind: .collection),
    Operand("ID", .optional),
  ],
  options: [
    OptionSpecification("ask", .none, "ask the peers in reach to say what they hold now"),
    OptionSpecification("watch", .none, "go on, and show it again when it changes; ends with Ctrl-C"),
    OptionSpecification("id-type", .choice("TYPE", NodePath.idTypes), "type of ID"),
  ],
  examples: [
    .init("seamesh receipts agency=WildAid BoardingReports r1 --ask", "Shows who holds the report r1 now"),
    .init("seamesh receipts agency=WildAid", "Shows who holds all that counts in the partition"),
  ]
) { invocation, context throws(Failure) in
  let target = try receiptTarget(invocation)
  let query = NodePath.query([("ask", invocation.has("ask") ? "true" : nil)])
  guard invocation.has("watch") else { return try show(try context.client.ask(.init(target: target + query)), context) }
  var isFirst = true
  try followEvents(target + "/watch" + query, context) { event throws(Failure) in
    if !isFirst, !context.isJSON { context.terminal.print("") }
    isFirst = false
    try show(Answer(body: Array(event.data.utf8) + [UInt8(ascii: "\n")], etag: nil), context)
  }
}

private func receiptTarget(_ invocation: Invocation) throws(Failure) -> String {
  let partition = invocation.required(0)
  guard let collection = invocation.operand(1) else {
    return "/v1/partitions/\(NodePath.encoded(partition))/receipts"
  }
  guard let id = invocation.operand(2) else {
    throw .usage("name a document by COLLECTION and ID, or the partition alone")
  }
  return NodePath.document(partition, collection, id: try NodePath.id(id, type: invocation["id-type"])) + "/receipts"
}

private func show(_ answer: Answer, _ context: Context) throws(Failure) {
  if context.isJSON { return context.terminal.write(answer.body) }
  let (report, terminal) = (try answer.json(), context.terminal)
  let words = report.list("words")
  let rungs = report["rungs"]?.map ?? ValueMap()
  func newest(_ isMeant: (ValueMap) -> Bool) -> String {
    let ages = words.filter { $0.flag("counts") && isMeant($0) }.map { $0.number("ageMilliseconds") }
    return ages.min().map { ", newest word \(duration(milliseconds: $0)) ago" } ?? ""
  }
  let isPeer: (ValueMap) -> Bool = { $0.text("of") == "device" && !$0.flag("isSelf") }
  if report.flag("ofWholePartition") {
    terminal.print("the document is deleted or empty: shown is everything in its partition")
  }
  let (peers, relays) = (rungs.number("peers"), rungs.number("relays"))
  let rows: [(String, Bool, String)] = [
    ("here", true, "on this device's disk"),
    ("peers", peers > 0, "\(counted(peers, "other device"))\(newest(isPeer))"),
    (
      "relay", relays > 0,
      relays > 0 ? "\(counted(relays, "relay"))\(newest { isPeer($0) && $0.text("role") == "relay" })" : "no"
    ), ("backend", rungs.flag("backend"), rungs.flag("backend") ? "yes\(newest { $0.text("of") == "backend" })" : "no"),
    ("photos", false, rungs.text("photos")),
  ]
  for (name, isReached, what) in rows {
    let label = name + String(repeating: " ", count: 9 - name.count)
    terminal.print(terminal.styled(label, isReached ? .green : .bold) + shown(what))
  }
  guard !words.isEmpty else { return terminal.print("no device has said yet what it holds; --ask asks those in reach") }
  var table = Table(["DEVICE", "LABEL", "USER", "ROLE", "SAYS", "AGO", ""])
  for word in words {
    let lacking = word.number("lacking")
    let said = lacking == 0 ? "all of it" : "lacks \(counted(lacking, "change"))"
    table.append([
      String(word.text("device").prefix(12)), word.text("label"), word.text("user"), word.text("role"),
      word.text("of") == "backend" ? "backend: \(said)" : said, duration(milliseconds: word.number("ageMilliseconds")),
      standing(word),
    ])
  }
  table.print(on: terminal)
}

private func standing(_ word: ValueMap) -> String {
  switch word.text("standing") {
  case "ended": "ended: not counted"
  case "forked": "two histories: not counted"
  case "unentitled": "not a relay: not counted"
  case "barred": "may not carry the partition any more: not counted"
  default: word.flag("isSelf") ? "this device" : ""
  }
}
