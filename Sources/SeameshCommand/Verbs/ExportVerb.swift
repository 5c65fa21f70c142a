import Replication
import Wire

let exportVerb = Verb(
  "export", "write out all documents of a partition, or of one collection",
  details: [
    "Writes JSON lines to standard output, in the order of the ids. Without COLLECTION each line is an object with the "
      + "members collection and document. Ends with status 1 where documents are damaged on this device, which it names; all others "
      + "are written."
  ],
  operands: [Operand("PARTITION", kind: .partition), Operand("COLLECTION", .optional, kind: .collection)],
  options: [OptionSpecification("array", .none, "one JSON array instead of lines")],
  examples: [.init("seamesh export agency=WildAid BoardingReports > reports.jsonl", "Writes all reports to a file")]
) { invocation, context throws(Failure) in
  let partition = invocation.required(0)
  let target =
    invocation.operand(1).map { NodePath.collection(partition, $0) + "/documents" }
    ?? "/v1/partitions/\(NodePath.encoded(partition))/documents"
  let (isArray, terminal) = (invocation.has("array"), context.terminal)
  let progress = ProgressBar("exporting", on: terminal)
  var (count, separator): (Int64, [UInt8]) = (0, Array("[\n".utf8))
  var lines = LineSplitter()
  try context.client.stream(.init(target: target)) { bytes in
    var out: [UInt8] = []
    for line in lines.append(bytes) {
      count += 1
      if isArray {
        out += separator + line
        separator = Array(",\n".utf8)
      } else {
        out += line + [UInt8(ascii: "\n")]
      }
    }
    terminal.write(out)
    if !terminal.isOutputTerminal { progress.update(done: count, total: nil, unit: "documents") }
    return true
  }
  progress.finish()
  if isArray { terminal.print(count == 0 ? "[]" : "\n]") }
  if count == 0 { try context.warnIfLacking(partition) }
  let damaged = try damaged(in: partition, invocation.operand(1), context)
  if !damaged.isEmpty { throw damageFailure(damaged, "are not in the export") }
}

private func damaged(
  in partition: String, _ collection: String?, _ context: Context
) throws(Failure) -> [Value] {
  try context.client.ask(.init(target: "/v1/damaged")).json().list("damaged")
    .filter { $0.text("partition") == partition && (collection == nil || $0.text("collection") == collection) }
    .compactMap { $0["id"] }
}

/// Cuts a stream into lines.
struct LineSplitter {
  private var rest: [UInt8] = []

  mutating func append(_ bytes: some Collection<UInt8>) -> [[UInt8]] {
    rest += bytes
    var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
    rest = lines.removeLast()
    return lines
  }
}
