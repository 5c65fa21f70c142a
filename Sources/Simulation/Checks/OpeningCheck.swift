import Engine
import Replication
import Wire

/// What a store holds when it is opened.
struct OpeningCheck: Check {
  let known: Knowledge

  /// The store that was opened has what was committed to it, and perhaps a last commit whose outcome nobody knew.
  func check(_ process: NodeProcess, _ commits: inout CommitCheck) {
    do { try readAgain(process, &commits) } catch {
      world.violate("I15", "the store of node \(process.node.slot) does not read: \(error)")
    }
  }

  private func readAgain(_ process: NodeProcess, _ commits: inout CommitCheck) throws {
    let (node, store) = (process.node, process.store.base)
    try readStatements(store, node, commits)
    for partition in try store.logPartitions() where node.directory.book.partitions[partition.id] == nil {
      node.directory.book.partitions[partition.id] = NodeBook.Partition(name: partition.name)
    }
    let (found, unknown) = try readRuns(store, node)
    for appended in unknown { try learnLargePayloads(of: appended, node, store, commits) }
    // They are read chain by chain, so that only all of them together have what each had seen.
    for appended in unknown { commits.learn(appended, node) }
    for appended in unknown { commits.checkCausality(of: appended, node) }
    let missing = node.directory.book.partitions.values.flatMap { $0.runs.values.joined() }.filter {
      !found.contains($0.number)
    }
    let known = Set(unknown.compactMap { self.known.library.known($0.run.body, in: $0.chain.partition)?.number })
    try HoldingsCheck(known: self.known).read(store, node)
    for run in missing where !known.contains(run.number) {
      world.violate("I15", "node \(node.slot) starts without a run of \(run.replica) that it had committed")
    }
  }

  private func readStatements(_ store: any LogStore, _ node: SimulatedNode, _ commits: CommitCheck) throws {
    let stored = try store.statementBytes()
    let found = Set(stored)
    let missing = node.directory.book.statements.values.filter { !found.contains($0.encoded) }
    let known = rights(of: node)
    for encoded in stored where !known.holds(encoded) { commits.learn(encoded, node) }
    for statement in missing { node.directory.book.statements[statement.id] = nil }
    // The last commit may have pushed some out.
    guard !self.known.isNothing(missing, beside: node.directory.book) else { return }
    world.violate("I15", "node \(node.slot) starts without a statement that it had committed")
  }

  /// The numbers of runs that the book has, and all else that the store has, twins of those among it.
  private func readRuns(
    _ store: any LogStore, _ node: SimulatedNode
  ) throws -> (found: Set<Int>, unknown: [ObservedCommit.Appended]) {
    var (found, unknown): (Set<Int>, [ObservedCommit.Appended]) = ([], [])
    for chain in try store.logChains() {
      let identity = ChainIdentity(fleet: world.fleet.id, partition: chain.partition, replica: chain.replica)
      let held = node.directory.book.partitions[chain.partition]?.held ?? []
      for run in try store.runs(of: identity, after: 0, byteLimit: .max) {
        if let known = self.known.library.known(run.body[...], in: chain.partition), held.contains(known.number),
          known.replica == chain.replica, known.context == run.context, found.insert(known.number).inserted
        {
          continue
        }
        let appended = AppendedRun(first: run.first, last: run.last, context: run.context, body: run.body[...])
        unknown.append(ObservedCommit.Appended(chain: identity, run: appended))
      }
    }
    return (found, unknown)
  }

  private func learnLargePayloads(
    of appended: ObservedCommit.Appended, _ node: SimulatedNode, _ store: any LogStore, _ commits: CommitCheck
  ) throws {
    let run = try RunCodec.decode(
      appended.run.body, fleet: appended.chain.fleet, partition: appended.chain.partition, hash: FakeCryptography.hash)
    for hash in run.changes.map(\.header.payloadHash) {
      if let bytes = try store.largePayload(hash) { commits.learn(hash, bytes, node) }
    }
  }
}
