import SampleData

/// How long a node that holds much takes until it is ready, and what it then occupies.
struct StartUpBench {
  let run: BenchRun
  let fleet: BenchFleet

  func measure() throws(Failure) {
    let sizes = run.sizes
    let first = try fleet.receiver()
    try first.subscribe(CatchUpBench.partition(.ascending))
    try fleet.waitUntil("the receiver has everything") { () throws(Failure) in
      try first.documentCount() == sizes.documents
    }
    first.stop()
    var starts: [Double] = []
    var resident: Int64 = 0
    for _ in 0..<sizes.starts {
      let node = try ChildNode(directory: first.directory, peers: [fleet.address])
      starts.append(node.startUp.asMilliseconds)
      resident = max(resident, node.memory().resident)
      node.stop()
    }
    let documents = Figure.text(Double(sizes.documents))
    run.report.add(
      Figure(
        "start-up", "start until ready", Samples(starts).median, "ms",
        basis: "with \(documents) documents, from the program's start to its ready line; median of \(starts.count)",
        floor: .atMost(1_000)),
      Figure(
        "start-up-memory", "memory when ready", Double(resident) / 1_048_576, "MiB",
        basis: "resident, with \(documents) documents", floor: .atMost(256)))
  }
}
