import Replication
import Seamesh
import Wire

let restoreVerb = Verb(
  "restore", "put a backup in place of this device's store",
  details: [
    "FILE is a backup of this very device. The present store is kept beside it, under a name with the time. The node goes on under a new replica "
      + "id, and gets back from its peers what was written after the backup."
  ],
  operands: [Operand("FILE")],
  examples: [.init("seamesh restore monday.backup", "Goes back to Monday's store")]
) { invocation, context throws(Failure) in
  let file = absolutePath(invocation.required(0))
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
