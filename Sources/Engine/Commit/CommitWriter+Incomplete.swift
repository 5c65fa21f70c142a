import Replication
import Wire

// A chain of which stored runs did not read at the opening is shorter in memory than in the log: what it lacks comes as any
// run does, and goes to the place that it has in the log.
extension CommitWriter {
  /// Where a run lies in the log that memory did not have: in the place of one that does not read, or whole. Nil where it is to
  /// be appended.
  mutating func place(
    ofStored run: AppendedRun, endingIn end: Digest?, _ chain: ChainIdentity
  ) throws -> Int64? {
    guard let end,
      state.look(at: chain.partition, { $0.log.incompleteChains.contains(chain.replica) }) == true
    else { return nil }
    let following = Following(store: transaction, reader: RunReader(state.identity), chain: chain)
    var damaged: [DamagedRun] = []
    for place in try transaction.places(of: chain, after: run.last - 1, limit: 1) where place.last == run.last {
      do {
        guard try following.body(at: place).map({ $0[...] == run.body }) == true else { continue }
        // Read again, it is there. The context that it refers to may not be.
        try transaction.replaceRun(at: place.arrival, with: run, of: chain)
        done.reread.append(chain)
        return place.arrival
      } catch let failure as any StoreFailure where failure.isOfOneRow {
        guard let fault = failure.runAtFault, fault.arrival == place.arrival, fault.first == run.first else { continue }
        damaged.append(fault)
      }
    }
    guard let place = try following.place(of: run.body, endingIn: end, among: damaged) else { return nil }
    try transaction.replaceRun(at: place.arrival, with: run, of: chain)
    done.mended.append((place, DamagedRuns.Chain(partition: chain.partition, replica: chain.replica)))
    return place.arrival
  }
}

/// What stored runs of a chain follow on: by that a run is known again whose own place does not read.
struct Following {
  let store: any LogReading
  let reader: RunReader
  let chain: ChainIdentity

  /// Runs that are looked at: one on each branch, and those that reach over a change where others begin.
  private static let limit = 128

  /// What runs follow on that begin behind a change; and the first of those that do not read.
  func hashes(behind last: UInt64) throws -> (known: Set<Digest>, unread: DamagedRun?) {
    var (known, unread): (Set<Digest>, DamagedRun?) = ([], nil)
    for place in try store.places(of: chain, after: last, limit: Following.limit) {
      do {
        // Their bodies alone: the context of what follows may be written as what differs from that of the damaged run.
        guard let body = try store.body(at: place, of: chain) else { continue }
        guard try RunCodec.beginning(of: body[...]).first == last + 1 else { continue }
        known.insert(try RunCodec.hashBefore(of: body[...]))
      } catch let failure where DamagedLog.isOfOneRow(failure) {
        unread = unread ?? DamagedLog.failure(failure, of: store.damagedRun(at: place, of: chain)).runAtFault
      }
    }
    return (known, unread)
  }

  /// The bytes of a stored run, which decode: that they do not, a row without a sum does not tell.
  func body(at place: RunPlace) throws -> [UInt8]? {
    guard let body = try store.body(at: place, of: chain) else { return nil }
    do throws(RunError) {
      _ = try reader.decode(body, in: chain.partition)
    } catch {
      throw DamagedLog.failure(error, of: store.damagedRun(at: place, of: chain))
    }
    return body
  }

  /// The bytes of a run that was found damaged, where these read.
  func intactBody(of run: DamagedRun) throws -> [UInt8]? {
    do {
      return try body(at: RunPlace(last: run.last, arrival: run.arrival))
    } catch let failure as any StoreFailure where failure.isOfOneRow {
      return nil
    }
  }

  /// The run lies in the log as it is.
  func holds(_ encoded: ArraySlice<UInt8>, endingAt last: UInt64) throws -> Bool {
    for place in try store.places(of: chain, after: last - 1, limit: 1) where place.last == last {
      do {
        if try store.body(at: place, of: chain).map({ $0[...] == encoded }) == true { return true }
      } catch let failure as any StoreFailure where failure.isOfOneRow {
        continue
      }
    }
    return false
  }

  /// Which of the damaged runs with its numbers a run is: the one that was written with its bytes, or the only one where what
  /// follows goes on from it. A run of another branch is none of them.
  func place(of body: ArraySlice<UInt8>, endingIn end: Digest, among damaged: [DamagedRun]) throws -> DamagedRun? {
    for run in damaged {
      let place = RunPlace(last: run.last, arrival: run.arrival)
      if try store.isWritten(body, at: place, of: chain) { return run }
    }
    guard damaged.count == 1, let run = damaged.first else { return nil }
    return try hashes(behind: run.last).known.contains(end) ? run : nil
  }
}
