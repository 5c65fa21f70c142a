import Replication
import Wire

/// A walk along the stored runs of one chain, of all its branches, that goes on behind those that do not read.
struct StoredRuns {
  private let chain: ChainIdentity
  private let log: any LogReading

  init(of chain: ChainIdentity, in log: any LogReading) { (self.chain, self.log) = (chain, log) }

  private static let stepByteCount = 4 * 1024 * 1024
  private static let stepPlaceCount = 1_024

  /// Visits runs that hold changes above `sequence`, ascending by their last change, in steps: the bodies of a long chain need
  /// not be in memory together. Where one of a step does not read, its others are read one by one, without their contexts, and
  /// may be visited for the second time. Answers why some do not read.
  func visit(after sequence: UInt64, _ body: (LogRun) throws -> Void) throws -> [any StoreFailure] {
    var (last, unread): (UInt64, [any StoreFailure]) = (sequence, [])
    while true {
      do {
        let runs = try log.runs(of: chain, after: last, byteLimit: StoredRuns.stepByteCount)
        guard let end = runs.last?.last else { return unread }
        try runs.forEach(body)
        last = end
      } catch let failure where DamagedLog.isOfOneRow(failure) {
        let places = try log.places(of: chain, after: last, limit: StoredRuns.stepPlaceCount)
        guard let end = places.last?.last else { throw failure }
        for place in places {
          do {
            try visitBody(at: place, body)
          } catch let failure where DamagedLog.isOfOneRow(failure) {
            unread.append(DamagedLog.failure(failure, of: log.damagedRun(at: place, of: chain)))
          }
        }
        last = end
      }
    }
  }

  private func visitBody(at place: RunPlace, _ visit: (LogRun) throws -> Void) throws {
    guard let body = try log.body(at: place, of: chain) else { return }
    let first = try RunCodec.beginning(of: body[...]).first
    try visit(LogRun(arrival: place.arrival, first: first, last: place.last, context: VersionVector(), body: body))
  }
}

extension RunReader {
  /// Headers of a chain's stored runs that hold changes above `sequence`, ascending, of all branches, and why others do not
  /// read. A header reads also where the context beside it does not; its context is empty then, as are all without
  /// `contexts`: those of a long chain would take far more memory than its headers.
  func headers(
    of chain: ChainIdentity, after sequence: UInt64, _ name: PartitionName, _ authority: Authority,
    contexts: Bool = true, in log: any LogReading
  ) throws -> (runs: [RunSummary], unread: [any StoreFailure]) {
    var (runs, seen): ([RunSummary], Set<Int64>) = ([], [])
    let unread = try StoredRuns(of: chain, in: log).visit(after: sequence) { run in
      guard !seen.contains(run.arrival) else { return }
      runs.append(try summary(contexts ? run : run.withoutContext, chain.partition, name, authority))
      seen.insert(run.arrival)
    }
    return (runs, unread)
  }
}

extension LogRun {
  var withoutContext: LogRun {
    LogRun(arrival: arrival, first: first, last: last, context: VersionVector(), body: body)
  }
}
