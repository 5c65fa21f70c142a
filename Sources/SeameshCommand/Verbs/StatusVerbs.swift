import Replication
import Seamesh
import Wire

let statusVerb = Verb(
  "status", "show how this node does",
  examples: [.init("seamesh status", "Shows fleet, store and peers of the running node")]
) { _, context throws(Failure) in
  let answer = try context.client.ask(.init(target: "/v1/status"))
  if context.isJSON { return context.terminal.write(answer.body) }
  let status = try answer.json()
  let held = (status["held"]?.map?.entries ?? []).map { "\($0.value.shownText) \($0.key.string)" }
  let ended = (status["heldOfEnded"]?.map?.entries ?? []).map {
    "\($0.value.shownText) of \($0.key.string), which was ended"
  }
  let rows: [(String, String)] = [
    ("version", status.text("version")), ("fleet", "\(status.text("fleetName")) (\(status.text("fleet").prefix(12)))"),
    ("device", "\(status.text("label")) (\(status.text("device").prefix(12)))"), ("user", status.text("user")),
    ("membership", membershipLine(status.list("endedBy"))),
    ("directory", status.text("directory")),
    ("listening", (status["listen"]?.items ?? []).map(\.shownText).joined(separator: ", ")),
    ("running for", duration(milliseconds: status.number("uptimeMilliseconds"))),
    ("documents", "\(status.number("documents"))"), ("changes", "\(status.number("changes"))"),
    ("held", (held + ended).joined(separator: ", ")), ("log", byteCount(status.number("logBytes"))),
    ("store", byteCount(status.number("databaseBytes"))), ("disk free", byteCount(status.number("diskFreeBytes"))),
    ("peers", "\(status.number("peersConnected")) connected"), ("discovery", status.text("discovery")),
    ("backend", status["forwarding"]?.map.map(forwardingLine) ?? ""),
    (
      "links",
      (status["links"]?.items ?? []).compactMap(\.map).map(linkLine).filter { !$0.isEmpty }.joined(separator: "; ")
    ),
    ("conflicts", conflictLine(status["conflicts"]?.map)), ("if wiped", wipeLine(status)),
    ("writes", status.flag("readOnly") ? "refused: the store is read-only" : ""),
  ]
  for (name, value) in rows where !value.isEmpty {
    let label = name + String(repeating: " ", count: 12 - name.count)
    context.terminal.print(context.terminal.styled(label, .bold) + shown(value))
  }
}

private func wipeLine(_ status: ValueMap) -> String {
  let aside = status.texts("setAside")
  let unchecked = aside.isEmpty ? "" : "would be lost and is not checked: \(aside.joined(separator: ", "))"
  guard case .int(let changes)? = status["lostIfWiped"] else { return unchecked }
  guard changes > 0 else {
    return aside.isEmpty ? "nothing would be lost" : "nothing of the store would be lost; \(unchecked)"
  }
  let missing = "\(counted(changes, "change")) not known to be in the backend or on two other devices"
  return "\(missing); \(aside.isEmpty ? "" : unchecked + "; ")see seamesh safe-to-wipe"
}

/// Nothing while this device is a member.
private func membershipLine(_ ends: [ValueMap]) -> String {
  guard !ends.isEmpty else { return "" }
  return ends.map(ended).joined(separator: "; ")
    + ": it writes nothing any more and is told nothing new; what it wrote that others did not have by then is handed over, and is held where its end says so"
}

/// Nothing where it is not known.
private func conflictLine(_ count: ValueMap?) -> String {
  guard let count else { return "" }
  let (open, partitions) = (count.number("openPartitions"), counted(count.number("partitions"), "partition"))
  guard open > 0 else { return "none in \(partitions) summed up" }
  return "open in \(open) of \(partitions) summed up; see seamesh conflicts"
}

let peersVerb = Verb(
  "peers", "show whom this node sees, and how far behind whom",
  details: [
    "BEHIND counts the changes that the peer lacks, AHEAD those that this node lacks; of one that is silent as far as is known "
      + "here, since it may have met others."
  ],
  examples: [.init("seamesh peers", "Shows the other nodes that are near")]
) { _, context throws(Failure) in
  let answer = try context.client.ask(.init(target: "/v1/peers"))
  if context.isJSON { return context.terminal.write(answer.body) }
  let peers = try answer.json().list("peers")
  guard !peers.isEmpty else {
    return context.terminal.print("no other node has been seen; seamesh doctor may know why")
  }
  var table = Table(
    ["DEVICE", "LABEL", "USER", "ADDRESS", "STATE", "RTT", "BEHIND", "AHEAD"], rightAligned: [5, 6, 7])
  for peer in peers {
    let detail = remark(on: peer)
    let trip = if case .double(let value)? = peer["roundTripMilliseconds"] { "\(Int(value.rounded())) ms" } else { "" }
    table.append([
      String(peer.text("device").prefix(12)), peer.text("label"), peer.text("user"), peer.text("address"),
      peer.text("state") + (detail.isEmpty ? "" : ": \(detail)"), trip, lag(peer["behind"]), lag(peer["ahead"]),
    ])
  }
  table.print(on: context.terminal)
}

/// What else is to be said of its state.
private func remark(on peer: ValueMap) -> String {
  let detail =
    peer.text("state") == "silent"
    ? "for \(duration(milliseconds: peer.number("lastContactMilliseconds")))" : peer.text("detail")
  let parts = [detail, peer.flag("ended") ? "ended, it is no member any more" : ""]
  return parts.filter { !$0.isEmpty }.joined(separator: "; ")
}

private func lag(_ value: Value?) -> String {
  if case .int(let changes)? = value { "\(changes)" } else { "?" }
}

let devicesVerb = Verb(
  "devices", "show the members of the fleet",
  examples: [.init("seamesh devices", "Shows every device with its user and role")]
) { _, context throws(Failure) in
  let answer = try context.client.ask(.init(target: "/v1/devices"))
  if context.isJSON { return context.terminal.write(answer.body) }
  var table = Table(["DEVICE", "LABEL", "USER", "ROLE", ""])
  for device in try answer.json().list("devices") {
    table.append([
      String(device.text("device").prefix(12)), device.text("label"), device.text("user"),
      device.texts("roles").joined(separator: ", "), standing(of: device),
    ])
  }
  table.print(on: context.terminal)
}

/// Whether it is this one, and what ended it, by whom and when.
private func standing(of device: ValueMap) -> String {
  ((device.flag("isSelf") ? ["this device"] : []) + device.list("endedBy").map(ended)).joined(separator: "; ")
}

/// By whom a device was ended, since when, and as what.
private func ended(by end: ValueMap) -> String {
  let how =
    switch end.text("manner") {
    case "retire": " (retired)"
    case "revoke": " (revoked)"
    case "compromised": " (revoked as compromised)"
    default: ""
    }
  return "ended by \(end.text("issuer")), \(times(of: end))\(how)"
}

let partitionsVerb = Verb(
  "partitions", "show what this node holds",
  details: [
    "Two nodes with equal digests of a partition hold the same documents in it. The first digest after a start costs a pass "
      + "over the documents: one that takes long is computed behind the listing, for the next one to show.",
    "CONFLICTS says whether something waits for a decision there: seamesh conflicts lists it.",
  ],
  examples: [
    .init("seamesh partitions --json", "Shows documents, changes, version vector and state digest of each partition")
  ]
) { _, context throws(Failure) in
  let answer = try context.client.ask(.init(target: "/v1/partitions"))
  if context.isJSON { return context.terminal.write(answer.body) }
  let partitions = try answer.json().list("partitions")
  guard !partitions.isEmpty else {
    return context.terminal.print("this node holds nothing yet; seamesh subscribe PARTITION asks for some")
  }
  var table = Table(
    ["PARTITION", "WANTED", "DOCUMENTS", "CHANGES", "HELD", "CONFLICTS", "DIGEST"], rightAligned: [2, 3, 4])
  for partition in partitions {
    table.append([
      partition.text("name"), partition.flag("subscribed") ? "yes" : "no", "\(partition.number("documents"))",
      "\(partition.number("changes"))", "\(partition.number("heldChanges"))",
      yesOrNo(partition["conflicts"]),
      partition.text("digestState") == "computed"
        ? String(partition.text("digest").prefix(16)) : partition.text("digestState"),
    ])
  }
  table.print(on: context.terminal)
  for partition in partitions {
    guard case .string(let reason)? = partition["digestReason"] else { continue }
    context.terminal.print(
      shown("\(partition.text("name")): digest \(partition.text("digestState")): \(reason.string)"))
  }
}

/// Nothing where it is not known.
private func yesOrNo(_ value: Value?) -> String {
  guard case .bool(let isSo)? = value else { return "" }
  return isSo ? "yes" : "no"
}

let doctorVerb = Verb(
  "doctor", "find out why nodes do not meet, and what else is wrong",
  details: ["The exit status is 1 where it finds a problem; warnings alone leave it at 0."],
  examples: [.init("seamesh doctor", "Shows what was looked at, and a remedy for each finding")]
) { _, context throws(Failure) in
  let answer = try context.client.ask(.init(target: "/v1/doctor"))
  let findings = try answer.json().list("findings")
  if context.isJSON { context.terminal.write(answer.body) } else { show(findings, context.terminal) }
  let problems = findings.count { $0.text("level") == "problem" }
  guard problems == 0 else { throw Failure(.failed, "found \(counted(Int64(problems), "problem"))") }
}

private func show(_ findings: [ValueMap], _ terminal: Terminal) {
  for finding in findings {
    let mark =
      switch finding.text("level") {
      case "ok": terminal.styled("ok     ", .green)
      case "warning": terminal.styled("warning", .yellow)
      default: terminal.styled("problem", .red)
      }
    terminal.print("\(mark)  \(shown(finding.text("message")))")
    if !finding.text("remedy").isEmpty { terminal.print("         \(shown(finding.text("remedy")))") }
  }
}
