import Wire

let exportVerb = Verb(
  "export", "write out all documents of a partition, or of one collection",
  details: [
    "Writes JSON lines to standard output, in the order of the ids. Without COLLECTION each line is an object with the "
      + "members collection and document."
  ],
  operands: [Operand("PARTITION"), Operand("COLLECTION", .optional)],
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
