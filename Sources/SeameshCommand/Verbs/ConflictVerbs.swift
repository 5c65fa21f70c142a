import Replication
import Seamesh
import Wire

let conflictsVerb = Verb(
  "conflicts", "list what was written at once by several and waits for somebody to decide",
  details: [
    "Where two people write the same field without having seen one another's value, every node shows the same one and keeps the "
      + "other. This lists them, of a partition or of all that are here: what is shown and what is not, who wrote it and when; also "
      + "what was written to a document that somebody else deleted. Who deleted it is not kept.",
    "seamesh resolve decides one. So does any later write of that field.",
    "Documents are looked at one by one, so a large partition takes its time; with --json the member incomplete says whether the "
      + "limit ended the list.",
  ],
  operands: [Operand("PARTITION", .optional, kind: .partition)],
  options: [OptionSpecification("limit", .text("N"), "so many conflicts at most; 100 where it is not said")],
  examples: [.init("seamesh conflicts agency=WildAid", "Lists what waits for a decision in the partition")]
) { invocation, context throws(Failure) in
  let limit = try invocation.count("limit") ?? standardLimit
  guard limit > 0 else { throw .usage("--limit takes a whole number above 0") }
  let search = ConflictSearch(context, limit: limit)
  defer { search.line.finish() }
  if let partition = invocation.operand(0) {
    try search.look(in: partition)
    if search.isEmpty { try context.warnIfLacking(partition) }
  } else {
    let partitions = try context.client.ask(.init(target: "/v1/partitions")).json().list("partitions")
    for partition in partitions {
      do throws(Failure) { try search.look(in: partition.text("name")) } catch {
        // What is only carried here shows its documents to nobody.
        guard error.status == .notPermitted else { throw error }
      }
    }
  }
  search.line.finish()
  search.show()
}

private let standardLimit = 100
private let pageLimit = 1_000

/// Asks page after page.
private final class ConflictSearch {
  private let context: Context
  private let limit: Int
  let line: WaitingLine
  private var found: [(partition: String, conflict: ValueMap)] = []
  private var (examined, untold) = (Int64(0), Int64(0))
  private var isIncomplete = false

  init(_ context: Context, limit: Int) {
    (self.context, self.limit, line) = (context, limit, WaitingLine(on: context.terminal))
  }

  /// No document was there to look at.
  var isEmpty: Bool { examined == 0 && found.isEmpty }

  /// Nothing any more where there are enough.
  func look(in partition: String) throws(Failure) {
    var cursor: String?
    repeat {
      guard found.count < limit else { return isIncomplete = true }
      let query = NodePath.query([("limit", String(min(pageLimit, limit - found.count))), ("after", cursor)])
      let target = "/v1/partitions/\(NodePath.encoded(partition))/conflicts" + query
      let page = try context.client.ask(.init(target: target)).json()
      let conflicts = page.list("conflicts")
      found += conflicts.prefix(limit - found.count).map { (partition, $0) }
      if found.count == limit, conflicts.count > limit { isIncomplete = true }
      examined += page.number("examined")
      untold += page.number("untold")
      cursor = page["next"] == .null ? nil : page.text("next")
      line.update("\(counted(examined, "document")) looked at, \(counted(Int64(found.count), "conflict")) found")
    } while cursor != nil
  }

  func show() {
    let terminal = context.terminal
    if context.isJSON {
      let list = found.map { partition, conflict -> Value in
        var map = conflict
        map["partition"] = .string(Text(partition))
        return .map(map)
      }
      return terminal.print(
        ExtendedJSON.object([
          ("conflicts", .array(list)), ("examined", .int(examined)), ("incomplete", .bool(isIncomplete || untold > 0)),
        ]))
    }
    for (partition, conflict) in found { show(conflict, of: partition, on: terminal) }
    if found.isEmpty { terminal.print("nothing waits for a decision; \(counted(examined, "document")) looked at") }
    if untold > 0 {
      terminal.print(
        "\(counted(untold, "more conflict")) of these documents come once others of the same document are decided")
    }
    if isIncomplete { terminal.print("there may be more: ask with --limit=N") }
  }

  private func show(_ conflict: ValueMap, of partition: String, on terminal: Terminal) {
    let id = conflict["document"].map { ExtendedJSON.text($0) } ?? ""
    let place = conflict.flag("deleted") ? "deleted" : conflict.text("place")
    terminal.print(
      terminal.styled(shown("\(partition)  \(conflict.text("collection"))  \(id)  \(place)"), .bold))
    var table = Table(["", "AT", "VALUE", "BY", "WRITTEN"])
    let author = conflict["shownBy"]?.map
    table.append([
      "shown", conflict.text("place"), conflict["shown"].map(brief) ?? "nothing", author.map(writer) ?? "not kept",
      time(author?["written"]),
    ])
    for value in conflict.list("values") {
      table.append([
        String(value.number("number")), value.text("path"), said(value), writer(value), time(value["written"]),
      ])
    }
    table.print(on: terminal)
    if conflict.flag("deleted") {
      terminal.print("taking a value brings the document back with that alone: its other fields are gone")
    }
    terminal.print("seamesh resolve \(shown(quoted(partition))) \(conflict.text("id"))\n")
  }
}

/// What a value that is not shown says, such as `remove`.
private func said(_ value: ValueMap) -> String {
  let text = value["value"].map(brief) ?? ""
  return value.text("kind") == "set" ? text : "\(value.text("kind")) \(text)"
}

private func writer(_ value: ValueMap) -> String {
  let (user, label) = (value.text("user"), value.text("label"))
  if user.isEmpty { return String(value.text("replica").prefix(12)) }
  return label.isEmpty ? user : "\(user) (\(label))"
}

private func time(_ value: Value?) -> String {
  guard case .date(let milliseconds)? = value, let text = CalendarTime.text(milliseconds) else { return "" }
  return String(decoding: text, as: UTF8.self)
}

private let briefCharacters = 60

private func brief(_ value: Value) -> String {
  let text = ExtendedJSON.text(value)
  return text.count <= briefCharacters ? text : text.prefix(briefCharacters - 1) + "…"
}

/// As a shell takes it.
private func quoted(_ word: String) -> String {
  word.allSatisfy { $0.isLetter || $0.isNumber || "=-_.:/".contains($0) }
    ? word : "'" + word.replacing("'", with: "'\\''") + "'"
}

let resolveVerb = Verb(
  "resolve", "decide a conflict that seamesh conflicts lists",
  details: [
    "CONFLICT is what seamesh conflicts prints behind the partition. It names the conflict in the version of the document that was "
      + "listed: where the document has changed since, nothing is written, and the list is to be read again.",
    "The decision is an ordinary change: it travels to every node, and closes the conflict there.",
    "Of a deleted document the list shows what was written to it by somebody who did not know. Taking that brings the document "
      + "back with those fields alone: what else it held went with the deletion. --value gives it whole, --keep leaves it deleted.",
  ],
  operands: [Operand("PARTITION", kind: .partition), Operand("CONFLICT")],
  options: [
    OptionSpecification("keep", .none, "what is shown stays"),
    OptionSpecification("take", .text("N"), "the value with this number takes its place", repeats: true),
    OptionSpecification("value", .text("JSON"), "this stands there instead, in Extended JSON"),
  ],
  examples: [
    .init("seamesh resolve agency=WildAid 7265.0672.1-5f.1 --take=1", "Puts the value 1 in the place of what is shown"),
    .init("seamesh resolve agency=WildAid 7265.0672.1-5f.1 --keep", "Keeps what is shown"),
  ]
) { invocation, context throws(Failure) in
  let target =
    "/v1/partitions/\(NodePath.encoded(invocation.required(0)))/conflicts/\(NodePath.encoded(invocation.required(1)))/resolve"
  let (name, value) = try decision(invocation)
  let answer = try context.client.ask(
    .init(
      method: "POST", target: target, body: Array(ExtendedJSON.object([(Text(name), value)]).utf8), isTyped: true))
  if context.isJSON { return context.terminal.write(answer.body) }
  let map = try answer.json()
  context.terminal.print("decided (\(map.text("safety")))")
  if map.flag("created") {
    context.terminal.print("the document is there again, with what was decided and nothing else of what it held before")
  }
}

private func decision(_ invocation: Invocation) throws(Failure) -> (String, Value) {
  let given = ["keep", "take", "value"].filter { invocation.has($0) }
  guard given.count == 1 else { throw .usage("say one of --keep, --take=N and --value=JSON") }
  if let text = invocation["value"] { return ("value", try typedJSON(text, "--value")) }
  guard invocation.has("take") else { return ("keep", .bool(true)) }
  var numbers: [Value] = []
  for text in invocation.all("take") {
    guard let number = Int64(text), number > 0 else {
      throw .usage("--take takes the number of a value, not \(shown(text))")
    }
    numbers.append(.int(number))
  }
  return ("take", .array(numbers))
}
