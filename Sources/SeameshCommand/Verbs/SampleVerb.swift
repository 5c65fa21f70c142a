import Replication
import SampleData
import Wire

/// Reports in one write: enough to keep the system calls few.
private let batchSize = 256

let sampleVerb = Verb(
  "sample", "make boarding reports to try things out with",
  details: [
    "Writes invented reports of marine patrols as JSON lines to standard output. One seed always gives the same reports, "
      + "and more of them begin with the same ones. Their field agency names the partition that each belongs to.",
    "With --duty it writes the officers' duty entries around these reports instead.",
  ],
  options: [
    OptionSpecification("count", .text("N"), "how many; otherwise 100"),
    OptionSpecification("seed", .text("N"), "what they are made from; otherwise 1"),
    OptionSpecification("duty", .none, "duty entries instead of reports"),
  ],
  examples: [
    .init(
      "seamesh sample --count=1000 | seamesh import --partition-by=agency BoardingReports -",
      "Stores a thousand reports, each in its agency's partition")
  ]
) { invocation, context throws(Failure) in
  let count = try invocation.count("count") ?? 100
  let seed = UInt64(try invocation.count("seed") ?? 1)
  if invocation.has("duty") {
    write(SampleDuty(seed: seed).prefix(count), context.terminal)
  } else {
    write(SampleReports(seed: seed).prefix(count), context.terminal)
  }
}

private func write(_ documents: some Sequence<SampleDocument>, _ terminal: Terminal) {
  var (lines, waiting): ([UInt8], Int) = ([], 0)
  for document in documents {
    ExtendedJSON.write(.map(document.withID), into: &lines)
    lines.append(UInt8(ascii: "\n"))
    waiting += 1
    if waiting == batchSize {
      terminal.write(lines)
      (lines, waiting) = ([], 0)
    }
  }
  terminal.write(lines)
}
