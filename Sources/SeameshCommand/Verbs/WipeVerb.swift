import Glibc
import Replication
import Seamesh
import Wire

let safeToWipeVerb = Verb(
  "safe-to-wipe", "say whether everything on this device is known to be elsewhere",
  details: [
    "Yes, and exit status 0, only if every change that is here, whosever it is, is in the backend by the word of a relay, the "
      + "office or an admin, or on two other devices, each by its own signed word of the last seven days. What this node cannot "
      + "know is no. Words of devices that were ended, or of which two histories are known, do not count.",
    "No, and exit status 1, with what would be lost, who has it already, who in reach could take it, and why waiting may bring nothing. --ask asks those in reach first; --send has "
      + "the backend sent what it lacks as well, and goes on asking until it is safe or the time is over.",
    "The answer holds for the moment in which it is given: what is written after it is not in it.",
  ],
  options: [
    OptionSpecification(
      "holders", .text("N"), "so many other devices hold what the backend does not; 2 where it is not said",
      configurable: true),
    OptionSpecification(
      "heard-within", .text("TIME"), "words that are older do not count, such as 24h or 7d (the default)",
      configurable: true),
    OptionSpecification("ask", .none, "ask the peers in reach to say what they hold now"),
    OptionSpecification("send", .none, "send to the backend and ask peers until it is safe"),
    OptionSpecification("timeout", .text("TIME"), "with --send: so long at the most, such as 30s or 5m; 1m by default"),
  ],
  examples: [
    .init("seamesh safe-to-wipe --ask", "Asks who is in reach, and says yes or no"),
    .init("seamesh safe-to-wipe --send --timeout=10m", "Brings what is here to safety first"),
  ]
) { invocation, context throws(Failure) in
  guard invocation.has("send") || invocation["timeout"] == nil else {
    throw .usage("--timeout goes with --send: without it nothing waits")
  }
  var answer = try judged(invocation, context)
  if invocation.has("send") { answer = try send(answer, invocation, context) }
  let report = try answer.json()
  try show(report, answer, context)
  guard !report.flag("safe") else { return }
  throw Failure(.failed, sentence(report))
}

private let firstWaitMilliseconds: Int64 = 60_000
private let lookMilliseconds: useconds_t = 1_000

private func judged(_ invocation: Invocation, _ context: Context) throws(Failure) -> Answer {
  var devices: String?
  if let text = invocation["holders"] {
    guard let number = Int(text), number > 0 else {
      throw .usage("--holders takes a whole number above 0, not \(shown(text))")
    }
    devices = String(number)
  }
  let milliseconds = try timeSpan(invocation, "heard-within").map(String.init)
  let asks = invocation.has("ask") || invocation.has("send")
  let query = NodePath.query([("devices", devices), ("milliseconds", milliseconds), ("ask", asks ? "true" : nil)])
  return try context.client.ask(.init(target: "/v1/safe-to-wipe" + query))
}

/// Has the forwarder try at once, and asks again until it is safe or the time is over.
private func send(_ first: Answer, _ invocation: Invocation, _ context: Context) throws(Failure) -> Answer {
  let patience = try timeSpan(invocation, "timeout") ?? firstWaitMilliseconds
  let (deadline, overflow) = monotonicMilliseconds().addingReportingOverflow(patience)
  let line = WaitingLine(on: context.terminal)
  defer { line.finish() }
  var answer = first
  var hasSent = false
  while true {
    let report = try answer.json()
    guard !report.flag("safe"), overflow || monotonicMilliseconds() < deadline else { return answer }
    line.update("\(missing(report)) yet")
    // A node that does not forward has said so: peers are left.
    if !hasSent { _ = try? context.client.ask(.init(method: "POST", target: "/v1/forwarding/send")) }
    hasSent = true
    usleep(lookMilliseconds * 1_000)
    answer = try judged(invocation, context)
  }
}

// MARK: Showing

private func show(_ report: ValueMap, _ answer: Answer, _ context: Context) throws(Failure) {
  if context.isJSON { return context.terminal.write(answer.body) }
  let terminal = context.terminal
  let isSafe = report.flag("safe")
  terminal.print(
    terminal.styled(isSafe ? "yes" : "no", isSafe ? .green : .bold)
      + "  \(counted(report.number("changes"), "change")) here in \(counted(report.number("partitions"), "partition")), "
      + missing(report))
  showLosses(report, terminal)
  for file in report.list("asideFiles") {
    terminal.print(
      shown(
        "records put aside: \(file.number("records")) in \(file.text("path")); mend them there, import that file and delete it"
      ))
  }
  for sentence in report.texts("obstacles") { terminal.print(shown(sentence)) }
  for note in report.texts("notes") { terminal.print(shown("note: \(note)")) }
  showWitnesses(report, terminal)
}

private func showLosses(_ report: ValueMap, _ terminal: Terminal) {
  let losses = report.list("losses")
  for loss in losses {
    terminal.print(shown("not safe: \(counted(loss.number("changes"), "change")) of \(loss.text("partition"))"))
    if loss.number("apart") > 0 {
      terminal.print("  \(loss.number("apart")) of them on a branch that was not chosen, of which nobody can speak")
    }
    for document in loss.list("documents") {
      let id = document["id"].map { ExtendedJSON.text($0) } ?? ""
      terminal.print(shown("  \(document.text("collection")) \(id)"))
    }
    let (holders, reachable) = (loss.texts("holders"), loss.texts("reachable"))
    if !holders.isEmpty { terminal.print(shown("  has it already: \(holders.joined(separator: ", "))")) }
    let nobody = holders.isEmpty ? "nobody who could take it" : "nobody else who could take it"
    terminal.print(shown("  in reach: \(reachable.isEmpty ? nobody : reachable.joined(separator: ", "))"))
    for sentence in loss.texts("hindrances") { terminal.print(shown("  \(sentence)")) }
  }
  let rest = report.number("lostPartitions") - Int64(losses.count)
  if rest > 0 { terminal.print("not safe either: changes of \(counted(rest, "other partition"))") }
}

private func showWitnesses(_ report: ValueMap, _ terminal: Terminal) {
  let words = report.list("evidence") + report.list("uncounted")
  guard !words.isEmpty else {
    return terminal.print("no other device has said yet what it holds; --ask asks those in reach")
  }
  var table = Table(["DEVICE", "LABEL", "ROLE", "SPEAKS OF", "PARTITIONS", "OLDEST", ""])
  for word in words {
    let age = if case .int(let age)? = word["ageMilliseconds"] { duration(milliseconds: age) } else { "?" }
    table.append([
      String(word.text("device").prefix(12)), word.text("label"), word.text("role"),
      word.text("of") == "backend" ? "the backend" : "itself", String(word.number("partitions")), age,
      word.flag("isSelf") ? "read by this device" : flaw(word.text("flaw")),
    ])
  }
  table.print(on: terminal)
}

private func flaw(_ name: String) -> String {
  switch name {
  case "": ""
  case "ended": "ended: not counted"
  case "forked": "two histories: not counted"
  case "unentitled": "not a relay: not counted"
  case "barred": "may not carry the partition any more: not counted"
  case "old": "too old: not counted"
  case "unheard": "of partitions that are not subscribed to here: not counted"
  case "clock": "its clock or this one is wrong: not counted"
  default: "not counted"
  }
}

/// What is on one other device is not lost with this one, and not as safe as was asked for either.
private func missing(_ report: ValueMap) -> String {
  let (missing, nowhere) = (report.number("lostChanges"), report.number("nowhereChanges"))
  let places = counted(report.number("devices"), "other device")
  guard missing > 0 else { return "all of them in the backend or on \(places)" }
  return "\(missing) not known to be in the backend or on \(places), \(nowhere) not known to be anywhere else"
}

private func sentence(_ report: ValueMap) -> String {
  guard report.number("lostChanges") > 0 else { return "this device is not safe to wipe" }
  return "this device is not safe to wipe: of its changes are \(missing(report))"
}
