import Forwarding
import Identity
import Replication
import Seamesh
import Wire

let verifyLedgerVerb = Verb(
  "verify-ledger", "recompute every hash and signature of a backend's ledger, back to the fleet's root",
  details: [
    "Needs no node and no data directory: the server, or a dump of it, and the fleet's id if a ledger that somebody made up from its "
      + "beginning is to show. The role needs nothing but to read: seamesh forward --set-up --audit-to=ROLE.",
    "The first thing that does not agree is named, with the table and the row's key. Documents are derived from the ledger and bear "
      + "no signature: each row is held against the sum that was written with it, and against what the runs make of the document, "
      + "so that one that was altered, is missing or is too much is found. That takes a temporary store where TMPDIR says, as large as a node's; "
      + "--sums-only goes without. A document that a relay has not sent yet is counted, and nothing wrong. A ledger that lacks the beginnings of chains ends with status 6. "
      + "What lacks at the end of a chain cannot be told from what was never brought.",
  ],
  options: [
    OptionSpecification("forward", .text("URL"), "the PostgreSQL server that has the ledger", configurable: true),
    ledgerDumpOption,
    OptionSpecification("sums-only", .none, "holds documents against their sums alone, and does not make them anew"),
    OptionSpecification("fleet", .text("FLEET"), "id of the fleet that it must be of, as init or fleet.id tells it"),
  ],
  examples: [
    .init("seamesh verify-ledger --forward=postgresql://auditor@db.example/fleet", "Verifies what the server has"),
    .init("seamesh verify-ledger --dump=monday.sql", "Verifies a dump"),
  ]
) { invocation, context throws(Failure) in
  let expected = try expectedFleet(invocation)
  ScratchGuard.begin()
  let tables = try namedLedger(invocation, context)
  let bar = ProgressBar("verifying", on: context.terminal)
  let isFolding = !invocation.has("sums-only")
  var verifier = LedgerVerifier(tables, folding: isFolding, ledgerCryptography) { tally, runs in
    // Each is looked at twice where documents are made anew.
    let done = Int64(tally.runs + (tally.folding?.runs ?? 0))
    bar.update(done: done, total: isFolding && tables.hasDocumentSums ? 2 * runs : runs, unit: "runs")
  }
  let tally = try ScratchGuard.whileNotEnding { () throws(Failure) in
    try judging {
      defer { bar.finish() }
      return try verifier.verify(expecting: expected)
    }
  }
  context.terminal.print(context.isJSON ? ledgerJSON(tally, tables.name) : ledgerText(tally, tables.name))
  guard tally.incompleteChains == 0 else {
    throw Failure(
      .behind,
      "what is there holds, but \(counted(tally.incompleteChains, "chain lacks its beginning", "chains lack their beginnings"))"
    )
  }
}

private func expectedFleet(_ invocation: Invocation) throws(Failure) -> FleetID? {
  guard let text = invocation["fleet"] else { return nil }
  guard let fleet = FleetID(text: text) else { throw .usage("--fleet takes a fleet's id: 64 hexadecimal digits") }
  return fleet
}

private func namedLedger(_ invocation: Invocation, _ context: Context) throws(Failure) -> any LedgerTables {
  if let path = invocation["dump"] { return try ledgerInDump(path, context) }
  guard let backend = try namedBackend(invocation, directory: context.directory) else {
    throw .usage("name the server with --forward=URL, or a dump with --dump=FILE")
  }
  return try ledgerAtServer(try backend.withPassword())
}

private func ledgerText(_ tally: LedgerTally, _ name: String) -> String {
  var lines = [
    "the ledger in \(name) holds, back to the root of fleet \(tally.fleet.text)",
    "\(counted(tally.statements, "statement")), \(counted(tally.partitions, "partition")), \(counted(tally.chains, "chain")) "
      + "(\(tally.forkedChains) forked), \(counted(tally.runs, "run")), \(counted(tally.changes, "change")), "
      + "\(counted(tally.payloads, "payload")), \(counted(tally.marks, "mark")); "
      + "\(byteCount(tally.bytes)) signed",
  ]
  lines += documentLines(tally)
  if tally.deadLetters > 0 {
    lines.append("dead letters among them: \(tally.deadLetters), without a body; their rows have the reason as refusal")
  }
  if tally.statementsLeftOut > 0 {
    lines.append(
      counted(
        tally.statementsLeftOut, "statement is beyond what its device may say, and counts nowhere",
        "statements are beyond what their devices may say, and count nowhere"))
  }
  if tally.runsWithoutRight > 0 {
    lines.append(
      counted(
        tally.runsWithoutRight, "run has no right that the ledger knows, and counts nowhere",
        "runs have no right that the ledger knows, and count nowhere"))
  }
  for chain in tally.incomplete {
    lines.append(
      "\(chain.partition.text.string): the chain of replica \(chain.replica.text) begins at change \(chain.first)")
  }
  let left = tally.incompleteChains - tally.incomplete.count
  if left > 0 {
    lines.append("and \(counted(left, "more chain without its beginning", "more chains without their beginnings"))")
  }
  return lines.map(shown).joined(separator: "\n")
}

private func documentLines(_ tally: LedgerTally) -> [String] {
  guard let documents = tally.documents else {
    return ["documents were not looked at: they may not be read, are not there, or have no sums (before format 8)"]
  }
  guard let folding = tally.folding else {
    return [
      "\(asWritten(documents)), but not made anew from the runs, by --sums-only or since the role may not "
        + "read how far relays have come (seamesh forward --set-up --audit-to=ROLE)"
    ]
  }
  var lines = ["\(asWritten(documents)), and what the runs make of that"]
  if folding.documentsBehind > 0 {
    lines.append("but for \(folding.documentsBehind), which relays have not sent yet as they are now")
  }
  if folding.partitionsLeftOut > 0 {
    lines.append(
      "but for those of \(counted(folding.partitionsLeftOut, "partition")), whose runs are not all there or not to be judged by this version"
    )
  }
  return lines + relayLines(folding)
}

private func asWritten(_ documents: Int) -> String {
  counted(documents, "document is as it was written", "documents are as they were written")
}

/// Relays that are named; a fleet has few.
private let namedRelays = 16

private func relayLines(_ folding: LedgerTally.Folding) -> [String] {
  guard folding.runsInDoubt > 0 || folding.areAllInDoubt else { return [] }
  let which = folding.areAllInDoubt ? "documents" : "documents that \(counted(folding.runsInDoubt, "run")) wrote"
  let what = folding.areAllInDoubt ? "statements" : "these"
  var lines = [
    "one that differs is no finding among \(which): \(what) came while relays had more to send, and they do not say yet that "
      + "all is there"
  ]
  lines += folding.relaysBehind.prefix(namedRelays).map { behind in
    let since = behind.since.flatMap { CalendarTime.text($0 / 1_000) }.map { String(decoding: $0, as: UTF8.self) }
    return "relay \(hexadecimal(behind.relay)) " + (since.map { "said so last at \($0)" } ?? "has never said so")
  }
  let left = folding.relaysBehind.count - namedRelays
  return left > 0 ? lines + ["and \(counted(left, "more relay"))"] : lines
}

private func ledgerJSON(_ tally: LedgerTally, _ name: String) -> String {
  ExtendedJSON.object([
    ("ledger", .string(Text(name))), ("fleet", .string(Text(tally.fleet.text))),
    ("statements", .int(Int64(tally.statements))), ("statementsLeftOut", .int(Int64(tally.statementsLeftOut))),
    ("partitions", .int(Int64(tally.partitions))), ("chains", .int(Int64(tally.chains))),
    ("forkedChains", .int(Int64(tally.forkedChains))), ("runs", .int(Int64(tally.runs))),
    ("changes", .int(Int64(tally.changes))), ("payloads", .int(Int64(tally.payloads))),
    ("marks", .int(Int64(tally.marks))), ("signedBytes", .int(tally.bytes)),
    ("runsWithoutRight", .int(Int64(tally.runsWithoutRight))),
    ("incompleteChains", .int(Int64(tally.incompleteChains))),
    ("documents", tally.documents.map { .int(Int64($0)) } ?? .null),
    ("deadLetters", .int(Int64(tally.deadLetters))),
    ("documentsBehind", tally.folding.map { .int(Int64($0.documentsBehind)) } ?? .null),
    ("partitionsLeftOut", tally.folding.map { .int(Int64($0.partitionsLeftOut)) } ?? .null),
    ("runsInDoubt", tally.folding.map { .int(Int64($0.runsInDoubt)) } ?? .null),
    (
      "relaysBehind",
      tally.folding.map { folding in
        .array(folding.relaysBehind.prefix(namedRelays).map { .string(Text(hexadecimal($0.relay))) })
      } ?? .null
    ),
  ])
}
