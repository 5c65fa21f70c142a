import Links
import Replication
import Seamesh
import Wire

let linkOption = OptionSpecification(
  "link", .object, "a class of links, what it may cost a day and what passes on it: see seamesh links --help",
  repeats: true, configurable: true)

let linksVerb = Verb(
  "links", "show what links may carry and what they cost, or choose their class",
  details: [
    "A link is of the class of the first rule of seamesh run --link whose routes hold its other end, then of the first whose "
      + "interfaces name it, and otherwise harbour. Classes are harbour (no limit), mobile (200 MB a day), satellite (10 MB a "
      + "day) and none (no connection at all). A rule may say bytesPerDay (null: no limit) and carries: partitions, or "
      + "beginnings of names with * behind, in the order in which they go; nothing else passes.",
    "What is counted is what the interface carries, TLS, TCP and IP included. At the limit nothing but authority passes, who is a "
      + "member and who may what, until the day is over at 00:00 UTC. A restart keeps the account.",
    "--use has every link be of one class, through restarts, until --use=auto: where the system cannot tell what a link costs, "
      + "somebody on board can.",
  ],
  options: [
    OptionSpecification(
      "use", .choice("CLASS", LinkClass.allCases.map(\.rawValue) + [LinkReport.automatic.string]),
      "have every link be of this class, but those on this machine itself that no rule names; auto: each by its rule")
  ],
  examples: [
    .init("seamesh links", "Shows each class, its bytes of today, and what waits"),
    .init("seamesh links --use=satellite", "Counts and bounds every link as one over satellite"),
  ]
) { invocation, context throws(Failure) in
  if let name = invocation["use"] {
    var body = ValueMap()
    body["use"] = .string(Text(name))
    let answer = try context.client.ask(
      .init(method: "PUT", target: "/v1/links", body: Array(ExtendedJSON.text(.map(body)).utf8)))
    if context.isJSON { return context.terminal.write(answer.body) }
    return context.terminal.print(
      name == LinkReport.automatic.string
        ? "each link is of its own class"
        : "every link is of the class \(name), but those on this machine itself that no rule names")
  }
  let answer = try context.client.ask(.init(target: "/v1/links"))
  if context.isJSON { return context.terminal.write(answer.body) }
  let links = try answer.json().list("links")
  guard !links.isEmpty else {
    return context.terminal.print("no link is in use, and none has a rule: whatever comes up passes everything")
  }
  var table = Table(
    ["CLASS", "INTERFACES", "SESSIONS", "TODAY", "LIMIT", "PASSES", "WAITING"], rightAligned: [2, 3, 4])
  for link in links { table.append(row(link)) }
  table.print(on: context.terminal)
}

private func row(_ link: ValueMap) -> [String] {
  let metered = link.flag("metered")
  return [
    link.text("class") + (link.flag("isChosen") ? " (chosen)" : ""), link.texts("interfaces").joined(separator: ", "),
    "\(link.number("sessions"))", metered ? byteCount(link.number("bytesToday")) : "",
    metered ? byteCount(link.number("bytesPerDay")) : "none", passing(link), waiting(link),
  ]
}

private func passing(_ link: ValueMap) -> String {
  switch link.text("passes") {
  case "partitions": "authority, then " + link.texts("carries").joined(separator: ", ")
  case "authority" where link.flag("metered"):
    "authority alone, for " + duration(milliseconds: link.number("renewsMilliseconds"))
  case let other: other
  }
}

private func waiting(_ link: ValueMap) -> String {
  let changes = link.number("waitingChanges")
  guard changes > 0 else { return "" }
  let since = link.number("waitingMilliseconds")
  return counted(changes, "change") + ", about " + byteCount(link.number("waitingCost"))
    + (since > 0 ? ", since " + duration(milliseconds: since) : "")
}

/// A line of `status`; empty where links cost nothing and pass everything.
func linkLine(_ link: ValueMap) -> String {
  guard link.flag("metered") || link.text("passes") != "everything" else { return "" }
  let spent =
    link.flag("metered")
    ? ": \(byteCount(link.number("bytesToday"))) of \(byteCount(link.number("bytesPerDay"))) today" : ""
  let waiting = waiting(link)
  return link.text("class") + spent + ", passes " + passing(link) + (waiting.isEmpty ? "" : "; waiting: " + waiting)
}

func linkRules(_ invocation: Invocation) throws(Failure) -> [LinkRule] {
  var rules: [LinkRule] = []
  for text in invocation.all("link") {
    guard case .map(let map) = try typedJSON(text, "--link") else { throw .usage("--link takes a JSON object") }
    do throws(LinkRuleError) {
      rules.append(try LinkRule(map))
    } catch {
      throw .usage("--link: \(error)")
    }
  }
  if let twice = Dictionary(grouping: rules, by: \.linkClass).first(where: { $0.value.count > 1 })?.key {
    throw .usage("--link: the class \(twice.rawValue) has two rules; one rule takes several interfaces and routes")
  }
  return rules
}
