import Forwarding
import Replication
import Seamesh
import Wire

let restoreVerb = Verb(
  "restore", "put a backup in place of this device's store, or fill a lost one from a backend's ledger",
  details: [
    "FILE is a backup of this very device. The present store is kept beside it, under a name with the time. The node goes on under a new replica "
      + "id, and gets back from its peers what was written after the backup.",
    "With --from-ledger or --dump the directory must have its device.key and fleet.id, and no data: that of a device that lost its "
      + "store, or that has just entered with seamesh join. Every run of the ledger is judged as one from a peer. Cut off, it goes on "
      + "where it was when it is run again. The device must be a member; a ledger has nobody's keys.",
  ],
  operands: [Operand("FILE", .optional)],
  usages: ["FILE", "--from-ledger=URL", "--dump=FILE"],
  options: [
    OptionSpecification("from-ledger", .text("URL"), "fill the store from the ledger at this PostgreSQL server"),
    ledgerDumpOption,
  ],
  examples: [
    .init("seamesh restore monday.backup", "Goes back to Monday's store"),
    .init(
      "seamesh restore --from-ledger=postgresql://auditor@db.example/fleet", "Fills the store anew from the backend"),
  ]
) { invocation, context throws(Failure) in
  let sources = [invocation.operand(0), invocation["from-ledger"], invocation["dump"]].compactMap { $0 }
  guard sources.count == 1 else {
    throw .usage("restore takes one of FILE, --from-ledger=URL and --dump=FILE")
  }
  if let backup = invocation.operand(0) { return try restore(fromBackup: backup, context) }
  // Before anything is asked of a server: whether there is a device to fill.
  _ = try local { () throws(NodeError) in try NodeSetup.identity(of: context.directory) }
  if let path = invocation["dump"] {
    return try restore(from: try ledgerInDump(path, tables: LedgerTable.ofLedger, context), context)
  }
  let backend = try namedBackend(invocation, "from-ledger", directory: context.directory)
  if let backend { try restore(from: try ledgerAtServer(try backend.withPassword()), context) }
}

private func restore(fromBackup path: String, _ context: Context) throws(Failure) {
  let file = absolutePath(path)
  let bar = ProgressBar("restoring", on: context.terminal)
  let aside = try local { () throws(NodeError) in
    try NodeSetup.restore(context.directory, from: file) { done, total in
      bar.update(done: Int64(done), total: Int64(total), unit: "pages")
    }
  }
  bar.finish()
  if context.isJSON {
    return context.terminal.print(
      ExtendedJSON.object([
        ("restored", .string(Text(file))), ("previous", aside.map { .string(Text($0)) } ?? .null),
      ]))
  }
  context.terminal.print("restored from \(file)" + (aside.map { "\nthe store that was there: \($0)" } ?? ""))
}

private func restore(from tables: any LedgerTables, _ context: Context) throws(Failure) {
  let bar = ProgressBar("restoring", on: context.terminal)
  let outcome = try judging {
    defer { bar.finish() }
    var restoring = try LedgerRestoring(context.directory, from: tables)
    return try restoring.run { done, total in bar.update(done: done, total: total, unit: "runs") }
  }
  if context.isJSON {
    context.terminal.print(
      ExtendedJSON.object([
        ("restored", .string(Text(tables.name))), ("changes", .int(outcome.changes)),
        ("partitionsOfOthers", .int(Int64(outcome.partitionsOfOthers))),
        ("runsWithoutRight", .int(Int64(outcome.runsWithoutRight))),
        ("runsLeftOut", .int(Int64(outcome.runsLeftOut))),
      ]))
  } else {
    context.terminal.print(shown("restored \(counted(outcome.changes, "change")) from the ledger in \(tables.name)"))
    if outcome.partitionsOfOthers > 0 {
      context.terminal.print(
        counted(
          outcome.partitionsOfOthers, "partition is not for this device, and was left there",
          "partitions are not for this device, and were left there"))
    }
    if outcome.runsWithoutRight > 0 {
      context.terminal.print(
        counted(
          outcome.runsWithoutRight, "run has no right any more, and was left there",
          "runs have no right any more, and were left there"))
    }
    context.terminal.print("Next: \(context.command("run"))")
  }
  guard outcome.runsLeftOut == 0 else {
    let reason = outcome.firstReason.map { " (the first: \($0))" } ?? ""
    throw Failure(
      .failed,
      "\(counted(outcome.runsLeftOut, "run of the ledger was", "runs of the ledger were")) not taken\(reason); seamesh verify-ledger says what is wrong there"
    )
  }
}
