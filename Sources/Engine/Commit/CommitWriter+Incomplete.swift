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
    guard let end, let log = state.mesh.partitions[chain.partition]?.log,
      log.incompleteChains.contains(chain.replica)
    else { return nil }
    var damaged: DamagedRun?
    for place in try transaction.places(of: chain, after: run.last - 1, limit: 1) where place.last == run.last {
      do {
        guard try transaction.body(at: place, of: chain).map({ $0[...] == run.body }) == true else { continue }
        // Read again, it is there. The context that it refers to may not be.
        try transaction.replaceRun(at: place.arrival, with: run, of: chain)
        done.reread.append(chain)
        return place.arrival
      } catch let failure as any StoreFailure where failure.isOfOneRow {
        guard let fault = failure.runAtFault, fault.arrival == place.arrival, fault.first == run.first else { continue }
        damaged = damaged ?? fault
      }
    }
    let following = Following(store: transaction, chain: chain)
    guard let damaged, try following.mayFollow(on: end, at: run.last, log) else { return nil }
    try transaction.replaceRun(at: damaged.arrival, with: run, of: chain)
    done.mended.append((damaged, DamagedRuns.Chain(partition: chain.partition, replica: chain.replica)))
    return damaged.arrival
  }
}

/// What stored runs of a chain follow on: by that a run is known again whose own place does not read.
struct Following {
  let store: any LogReading
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
      } catch let failure as any StoreFailure where failure.isOfOneRow {
        unread = unread ?? failure.runAtFault
      }
    }
    return (known, unread)
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

  /// Nothing speaks against a run that ends so: one follows on it, or all that follow do so on others that are here.
  func mayFollow(on end: Digest, at last: UInt64, _ log: PartitionLog) throws -> Bool {
    let known = try hashes(behind: last).known
    return known.contains(end) || known.allSatisfy { log.hasContent(through: last, $0, of: chain.replica) }
  }
}
