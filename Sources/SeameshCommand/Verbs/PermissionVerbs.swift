import Replication
import Seamesh
import Wire

let permissionsVerb = Verb(
  "permissions", "show who may do what, and by which statements",
  details: [
    "With PARTITION what each device may do there, with everything that gives it something and what ended; otherwise all "
      + "grants. ISSUED is when a statement was signed, by its issuer's clock, ARRIVED when it came into this node's store, by this "
      + "node's clock: later where the store was fetched or restored since."
  ],
  operands: [Operand("PARTITION", .optional, kind: .partition)],
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
  var table = Table(["STATEMENT", "WHAT", "BY", "ISSUED", "ARRIVED", ""])
  for right in rights {
    table.append([
      String(right.text("id").prefix(8)), right.text("words"), right.text("issuer"), issued(right) ?? "",
      arrived(right) ?? "",
      fate(of: right),
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
    for end in member.list("endedBy") { terminal.print(shown("  ended by \(end.text("words")), \(times(of: end))")) }
    for right in member.list("rights") {
      let id = right.text("id").prefix(8)
      terminal.print(
        shown("  \(right.text("level")) by \(right.text("words")) (\(id)), \(times(of: right)) \(fate(of: right))")
          .trimmed)
    }
    if member.list("rights").isEmpty { terminal.print("  nothing gives it any right there") }
  }
}

/// When a statement was signed and when it came here, as far as either is known.
func times(of right: ValueMap) -> String {
  [issued(right).map { "issued \($0)" }, arrived(right).map { "arrived here \($0)" }].compactMap { $0 }.joined(
    separator: ", ")
}

/// What the issuer's clock said.
private func issued(_ right: ValueMap) -> String? { wholeSeconds(right["issuedAt"]) }

/// What this node's clock said; nil where the store does not know.
private func arrived(_ right: ValueMap) -> String? {
  right.text("sinceBy") == "arrival" ? wholeSeconds(right["since"]) : nil
}

private func wholeSeconds(_ value: Value?) -> String? {
  guard case .int(let milliseconds)? = value, let text = CalendarTime.text(milliseconds) else { return nil }
  return String(decoding: text.prefix(19), as: UTF8.self) + "Z"
}

private func fate(of right: ValueMap) -> String {
  guard !right.flag("inForce") else { return "" }
  let ends = right.list("endedBy").map { "\($0.text("words")) (\($0.text("id").prefix(8)))" }
  return ends.isEmpty ? "not in force" : "ended by \(ends.joined(separator: ", "))"
}

extension String {
  fileprivate var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
