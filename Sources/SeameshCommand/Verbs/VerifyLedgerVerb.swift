import Forwarding
import Identity
import Replication
import Wire

let verifyLedgerVerb = Verb(
  "verify-ledger", "recompute every hash and signature of a backend's ledger, back to the fleet's root",
  details: [
    "Needs no node and no data directory: the server, or a dump of it, and the fleet's id if a ledger that somebody made up from its "
      + "beginning is to show. The role needs nothing but to read: seamesh forward --set-up --audit-to=ROLE.",
    "The first thing that does not agree is named, with the table and the row's key. Documents are derived from the ledger and bear "
      + "no signature: each row is held against the sum that was written with it, which shows what was altered since by accident or "
      + "by hand, and not what somebody wrote who knows how; a row that is missing is not seen. A ledger that lacks the beginnings of chains ends with status 6. What lacks at the "
      + "end of a chain cannot be told from what was never brought.",
  ],
  options: [
    OptionSpecification("forward", .text("URL"), "the PostgreSQL server that has the ledger", configurable: true),
    ledgerDumpOption,
    OptionSpecification("fleet", .text("FLEET"), "id of the fleet that it must be of, as init or fleet.id tells it"),
  ],
  examples: [
    .init("seamesh verify-ledger --forward=postgresql://auditor@db.example/fleet", "Verifies what the server has"),
    .init("seamesh verify-ledger --dump=monday.sql", "Verifies a dump"),
  ]
) { invocation, context throws(Failure) in
  let expected = try expectedFleet(invocation)
  let tables = try namedLedger(invocation, context)
  let bar = ProgressBar("verifying", on: context.terminal)
  var verifier = LedgerVerifier(tables, ledgerCryptography) { tally, runs in
    bar.update(done: Int64(tally.runs), total: runs, unit: "runs")
  }
  let tally = try judging {
    defer { bar.finish() }
    return try verifier.verify(expecting: expected)
  }
  context.terminal.print(context.isJSON ? ledgerJSON(tally, tables.name) : ledgerText(tally, tables.name))
  guard tally.incompleteChains == 0 else {
    throw Failure(.behind, "what is there holds, but \(tally.incompleteChains) chains lack their beginnings")
  }
}

private func expectedFleet(_ invocation: Invocation) throws(Failure) -> FleetID? {
  guard let text = invocation["fleet"] else { return nil }
  guard let fleet = FleetID(text: text) else { throw .usage("--fleet takes a fleet's id: 64 hexadecimal digits") }
  return fleet
}

private func namedLedger(_ invocation: Invocation, _ context: Context) throws(Failure) -> any LedgerTables {
  if let path = invocation["dump"] { return try ledgerInDump(path, context) }
  guard let address = try forwardingAddress(invocation, directory: context.directory) else {
    throw .usage("name the server with --forward=URL, or a dump with --dump=FILE")
  }
  return try ledgerAtServer(address)
}

private func ledgerText(_ tally: LedgerTally, _ name: String) -> String {
  var lines = [
    "the ledger in \(name) holds, back to the root of fleet \(tally.fleet.text)",
    "\(tally.statements) statements, \(tally.partitions) partitions, \(tally.chains) chains (\(tally.forkedChains) forked), "
      + "\(tally.runs) runs, \(tally.changes) changes, \(tally.payloads) payloads, \(tally.marks) marks; "
      + "\(byteCount(tally.bytes)) signed",
  ]
  if let documents = tally.documents {
    lines.append("\(documents) documents are as they were written; they are derived, and bear no signature")
  } else {
    lines.append("documents were not looked at: they may not be read, are not there, or have no sums (before format 8)")
  }
  if tally.statementsLeftOut > 0 {
    lines.append("\(tally.statementsLeftOut) statements are beyond what their devices may say, and count nowhere")
  }
  if tally.runsWithoutRight > 0 {
    lines.append("\(tally.runsWithoutRight) runs have no right that the ledger knows, and count nowhere")
  }
  for chain in tally.incomplete {
    lines.append(
      "\(chain.partition.text.string): the chain of replica \(chain.replica.text) begins at change \(chain.first)")
  }
  let left = tally.incompleteChains - tally.incomplete.count
  if left > 0 { lines.append("and \(left) more chains without their beginnings") }
  return lines.map(shown).joined(separator: "\n")
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
  ])
}
