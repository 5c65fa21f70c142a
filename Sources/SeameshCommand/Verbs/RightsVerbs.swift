import Replication
import Seamesh
import Wire

let dryRunOption = OptionSpecification("dry-run", .none, "show what it would do, and sign nothing")
let yesOption = OptionSpecification("yes", .none, "do not ask")

let grantVerb = Verb(
  "grant", "give somebody a level of rights in partitions, or take some away",
  details: [
    "WHO is device:LABEL or device:KEY, user:ID, role:ROLE, or everyone. LEVEL is none, carry, read, write or manage. PATTERN "
      + "is a partition's name, or the beginning of names followed by *; names of a reserved key, such as user=, are reached "
      + "by patterns that begin with it alone.",
    "What was granted to the same WHO on the same PATTERN is replaced. What was written until now stays; what others give "
      + "stays as well: seamesh permissions shows all of it.",
    "Of several devices of one label the one that was not ended is meant, and told; an ended one is named by the beginning of its key.",
  ],
  operands: [
    Operand("WHO"), Operand("LEVEL", kind: .choice(["none", "carry", "read", "write", "manage"])), Operand("PATTERN"),
  ], options: [dryRunOption, yesOption],
  examples: [
    .init("seamesh grant role:officer write 'agency=*'", "Lets officers write in every agency"),
    .init("seamesh grant everyone none '*' --dry-run", "Shows what closing an open fleet would do"),
  ]
) { invocation, context throws(Failure) in
  try wellFormed { () throws(NodeError) in
    try RightsForm.who(invocation.required(0))
    try RightsForm.pattern(Text(invocation.required(2)))
  }
  try changeRights(
    "/v1/grants",
    [
      ("who", .string(Text(invocation.required(0)))), ("level", .string(Text(invocation.required(1)))),
      ("pattern", .string(Text(invocation.required(2)))),
    ], invocation, context)
}

let revokeVerb = Verb(
  "revoke", "end a device that was lost, stolen or sent away",
  details: [
    "It may do nothing any more, and gets nothing more from anyone who has heard. What it wrote counts as far as it is here; "
      + "whatever else turns up in partitions of which there is anything here is held, until seamesh raise lets it count; in "
      + "others it counts, since nothing can list what nobody here knows of.",
    "With --compromised nothing of it counts in those others. With --at only what had arrived "
      + "here by then counts, by this node's clock.",
    "One of several devices of a label is named by the beginning of its key: a repeated command is not to end the next one.",
  ],
  operands: [Operand("DEVICE")],
  options: [
    OptionSpecification("compromised", .none, "somebody else may have written under its key"),
    OptionSpecification("at", .text("TIME"), "hold what arrived later, such as 2026-05-31T12:00:00Z"), dryRunOption,
    yesOption,
  ],
  examples: [
    .init("seamesh revoke bridge", "Ends the device labelled bridge"),
    .init("seamesh revoke 3fa2c11b --compromised --at=2026-05-31T12:00:00Z", "Holds all that came after it was stolen"),
  ]
) { invocation, context throws(Failure) in
  var members: [(key: Text, value: Value)] = [
    ("device", .string(Text(invocation.required(0)))), ("compromised", .bool(invocation.has("compromised"))),
  ]
  if let at = invocation["at"] {
    try wellFormed { () throws(NodeError) in try RightsForm.pastMoment(at) }
    members.append(("at", .string(Text(at))))
  }
  try changeRights("/v1/revocations", members, invocation, context, isEnd: true)
}

let retireVerb = Verb(
  "retire", "end a device that has done its work",
  details: [
    "It may do nothing any more. What it wrote counts as far as it is here, and of chains of which nothing has come here yet. "
      + "Let it hand over first what it wrote while it was away: seamesh safe-to-wipe on it says whether it has.",
    "One of several devices of a label is named by the beginning of its key: a repeated command is not to end the next one.",
  ],
  operands: [Operand("DEVICE")], options: [dryRunOption, yesOption],
  examples: [.init("seamesh retire 'old tablet'", "Ends the device of that label")]
) { invocation, context throws(Failure) in
  try changeRights(
    "/v1/retirements", [("device", .string(Text(invocation.required(0))))], invocation, context, isEnd: true)
}

let raiseVerb = Verb(
  "raise", "let count again what a revocation or a lowered grant holds back",
  details: [
    "WHAT is a device, for all that ends of it hold here, or the beginning of a statement's id as seamesh permissions shows "
      + "it. The device itself stays ended. One of several devices of a label is named by the beginning of its key."
  ],
  operands: [Operand("WHAT")], options: [dryRunOption, yesOption],
  examples: [.init("seamesh raise bridge", "Gives back what the revocation of bridge held")]
) { invocation, context throws(Failure) in
  try changeRights("/v1/raises", [("what", .string(Text(invocation.required(0))))], invocation, context)
}

let promoteVerb = Verb(
  "promote", "make a member an admin",
  details: [
    "Only where the fleet's root key lies, which signs it. Of a device that was ended it says so, and asks: promoted, it is let in "
      + "again, as an admin."
  ],
  operands: [Operand("DEVICE")], options: [dryRunOption, yesOption],
  examples: [.init("seamesh promote office", "Makes the device labelled office an admin")]
) { invocation, context throws(Failure) in
  try changeRights("/v1/promotions", [("device", .string(Text(invocation.required(0))))], invocation, context)
}

/// What is not written as it has to be is a mistake of the command line, which no node is asked about.
func wellFormed(_ check: () throws(NodeError) -> Void) throws(Failure) {
  do throws(NodeError) { try check() } catch { throw .usage(shown(error.message)) }
}

/// Shows what a narrowing would do and asks; then, or where nothing is taken away, has it signed. Of an end warnings are told before
/// that also where nobody is asked: it cannot be taken back.
private func changeRights(
  _ target: String, _ members: [(key: Text, value: Value)], _ invocation: Invocation, _ context: Context,
  isEnd: Bool = false
) throws(Failure) {
  let client = try context.client
  func ask(_ flag: Text) throws(Failure) -> Answer {
    let body = ExtendedJSON.object(members + (flag.utf8.isEmpty ? [] : [(flag, .bool(true))]))
    return try client.ask(.init(method: "POST", target: target, body: Array(body.utf8)))
  }
  var (isConfirmed, areTold) = (invocation.has("yes"), false)
  if invocation.has("dry-run") || !isConfirmed || isEnd {
    let answer = try ask("dryRun")
    let preview = try answer.json()
    if invocation.has("dry-run") {
      return context.isJSON ? context.terminal.write(answer.body) : show(preview, context.terminal)
    }
    let warnings = preview.texts("warnings")
    let asksFirst = preview.flag("narrowing") || !warnings.isEmpty
    if isConfirmed {
      for warning in warnings { context.terminal.warn(shown(warning)) }
      areTold = true
    } else if asksFirst, !preview.texts("statements").isEmpty {
      if !context.isJSON { show(preview, context.terminal) }
      guard context.terminal.canAsk, !context.isJSON else {
        let warnings = preview.texts("warnings")
        let why = warnings.isEmpty ? "this takes something away" : warnings.joined(separator: "; ")
        throw Failure(.failed, shown("nothing was signed: \(why); look with --dry-run, confirm with --yes"))
      }
      guard context.terminal.isAnsweredYes("Sign this?") else { throw Failure(.failed, "nothing was signed") }
      (isConfirmed, areTold) = (true, true)
    }
  }
  let answer = try ask(isConfirmed ? "yes" : "")
  context.isJSON
    ? context.terminal.write(answer.body) : show(try answer.json(), warns: !areTold, context.terminal)
}

/// - Parameter warns: they were not told before it was signed.
private func show(_ outcome: ValueMap, warns: Bool = true, _ terminal: Terminal) {
  let isSigned = outcome.flag("signed")
  let says = outcome.texts("says")
  if says.isEmpty { terminal.print("it is so already: nothing is signed") }
  for words in says { terminal.print(shown("\(isSigned ? "signed" : "would sign") \(words)")) }
  for fall in outcome.list("falls") {
    let (lost, gained) = (fall.number("lostChanges"), fall.number("gainedChanges"))
    guard lost + gained > 0 else { continue }
    let parts = [(lost, "no longer"), (gained, "again")].filter { $0.0 > 0 }.map { count, how in
      counted(
        count, isSigned ? "change counts" : "change would count", isSigned ? "changes count" : "changes would count")
        + " \(how)"
    }
    terminal.print(
      shown("  \(fall.text("partition")): \(parts.joined(separator: ", ")); documents: \(fall.number("documents"))"))
  }
  let lost = outcome.list("falls").reduce(0) { $0 + $1.number("lostChanges") }
  if outcome.flag("narrowing"), lost == 0 {
    terminal.print(isSigned ? "  nothing that is here has fallen" : "  nothing that is here would fall")
  }
  for effect in outcome.texts("effects") { terminal.print(shown("  \(effect)")) }
  let notCarried = outcome.texts("notCarried")
  if outcome.flag("narrowing"), !notCarried.isEmpty {
    terminal.print(shown("  not carried here: \(notCarried.joined(separator: ", "))"))
  }
  for note in outcome.texts("notes") { terminal.print(shown("  \(note)")) }
  guard warns else { return }
  for warning in outcome.texts("warnings") { terminal.print(terminal.styled(shown("  \(warning)"), .yellow)) }
}
