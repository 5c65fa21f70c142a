import Replication
import Seamesh
import Wire

let permissionsVerb = Verb(
  "permissions", "show who may do what, and by which statements",
  details: [
    "With PARTITION what each device may do there, with everything that gives it something and what ended; otherwise all "
      + "grants. SINCE is when the statement came here, or with ~ what its issuer's clock said."
  ],
  operands: [Operand("PARTITION", .optional)],
  options: [
    OptionSpecification("who", .text("WHO"), "device:LABEL or device:KEY, user:ID, role:ROLE, or everyone")
  ],
  examples: [
    .init("seamesh permissions agency=WildAid --who=user:ann@wildaid.example", "Shows what Ann's devices may do there"),
    .init("seamesh permissions", "Shows every grant"),
  ]
) { invocation, context throws(Failure) in
  var query: [String] = []
  if let partition = invocation.operand(0) { query.append("partition=" + NodePath.encoded(partition)) }
  if let who = invocation["who"] {
    try wellFormed { () throws(NodeError) in try RightsForm.who(who) }
    query.append("who=" + NodePath.encoded(who))
  }
  let target = "/v1/permissions" + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
  let answer = try context.client.ask(.init(target: target))
  if context.isJSON { return context.terminal.write(answer.body) }
  let report = try answer.json()
  if invocation.operand(0) == nil {
    show(rights: report.list("rights"), context.terminal)
  } else {
    show(members: report.list("members"), context.terminal)
  }
}

let rulesVerb = Verb(
  "rules", "show by which keys of partition names rules give rights",
  examples: [.init("seamesh rules", "Shows the rules of the fleet")]
) { _, context throws(Failure) in
  let answer = try context.client.ask(.init(target: "/v1/rules"))
  if context.isJSON { return context.terminal.write(answer.body) }
  show(rights: try answer.json().list("rules"), context.terminal)
}

private func show(rights: [ValueMap], _ terminal: Terminal) {
  guard !rights.isEmpty else { return terminal.print("nothing of the kind has been said") }
  var table = Table(["STATEMENT", "WHAT", "BY", "SINCE", ""])
  for right in rights {
    table.append([
      String(right.text("id").prefix(8)), right.text("words"), right.text("issuer"), since(right), fate(of: right),
    ])
  }
  table.print(on: terminal)
}

private func show(members: [ValueMap], _ terminal: Terminal) {
  guard !members.isEmpty else { return terminal.print("no device of this kind is known yet") }
  for member in members {
    let isSelf = member.flag("isSelf") ? ", this device" : ""
    let role = member.text("role").isEmpty ? "" : ", \(member.text("role"))"
    let name = "\(member.text("label")) (\(member.text("user"))\(role)\(isSelf))"
    terminal.print(terminal.styled(shown("\(name): \(member.text("level"))"), .bold))
    for end in member.list("endedBy") { terminal.print(shown("  ended by \(end.text("words")), \(since(end))")) }
    for right in member.list("rights") {
      let id = right.text("id").prefix(8)
      terminal.print(
        shown("  \(right.text("level")) by \(right.text("words")) (\(id)), \(since(right)) \(fate(of: right))").trimmed)
    }
    if member.list("rights").isEmpty { terminal.print("  nothing gives it any right there") }
  }
}

/// When a statement came here, or with ~ what its issuer's clock said.
func since(_ right: ValueMap) -> String {
  guard case .int(let milliseconds)? = right["since"], let text = CalendarTime.text(milliseconds) else { return "" }
  let time = String(decoding: text.prefix(19), as: UTF8.self) + "Z"
  return right.text("sinceBy") == "issuer" ? "~\(time)" : time
}

private func fate(of right: ValueMap) -> String {
  guard !right.flag("inForce") else { return "" }
  let ends = right.list("endedBy").map { "\($0.text("words")) (\($0.text("id").prefix(8)))" }
  return ends.isEmpty ? "not in force" : "ended by \(ends.joined(separator: ", "))"
}

extension String {
  fileprivate var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
