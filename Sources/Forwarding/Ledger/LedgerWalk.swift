import Replication
import Storage

/// Runs of one partition of a ledger, each behind all that its author had seen. A ledger keeps them by chain: wherever a run
/// names more of another chain, that one is gone along first.
package struct LedgerWalk {
  private let tables: any LedgerTables
  private let partition: PartitionID
  private var contexts: ContextResolver
  private var heads: [ReplicaID: Head] = [:]
  private var buffered = 0
  private var findings: [LedgerFinding] = []

  /// One chain, as far as it was walked.
  private struct Head {
    /// Key behind which it goes on.
    var after: [RowValue]
    /// Read, and not walked yet.
    var rows: ArraySlice<LedgerRow> = []
    /// The next run with its context.
    var next: (run: LedgerRun, context: VersionVector)?
    var isAtEnd = false
    /// Waits for another chain.
    var isUnderWay = false
  }

  /// A chain, and up to where of it somebody waits.
  private struct Errand {
    let replica: ReplicaID
    let goal: UInt64
  }

  /// Rows read of one chain at once, and bytes of all that were read and not walked: beyond, those of chains that wait are
  /// forgotten and read again.
  private static let rowLimit = 64
  private static let byteLimit = 16 * 1024 * 1024

  package init(_ tables: any LedgerTables, _ partition: PartitionID) {
    (self.tables, self.partition) = (tables, partition)
    contexts = ContextResolver(tables)
  }

  /// - Parameter received: how far chains without branches are held already; that is passed over.
  /// - Returns: rows that do not read. Each ends its chain here.
  package mutating func walk(
    above received: VersionVector, _ take: (LedgerRun, VersionVector) throws -> Void
  ) throws -> [LedgerFinding] {
    let replicas = try chains()
    for (replica, row) in replicas {
      let key = Array(row.values.prefix(2))
      let start = try tables.row(of: .forks, key) == nil ? received.sequence(of: replica) : 0
      heads[replica] = Head(after: key + LedgerWalk.end(of: start))
    }
    for (replica, _) in replicas { try go(along: replica, take) }
    return findings
  }

  /// Behind every run that ends there.
  private static func end(of sequence: UInt64) -> [RowValue] {
    [.integer(Int64(clamping: sequence)), .bytes([UInt8](repeating: 255, count: Digest.byteCount + 1))]
  }

  /// One row of each, in the order of their keys.
  private mutating func chains() throws -> [(replica: ReplicaID, row: LedgerRow)] {
    var found: [(ReplicaID, LedgerRow)] = []
    var after: [RowValue] = [.bytes(partition.digest.bytes), .bytes([]), .integer(0), .bytes([])]
    while let row = try tables.page(of: .runs, after: after, rows: 1).first, row.values[0] == after[0] {
      do throws(LedgerFinding) { found.append((try row.chain().replica, row)) } catch { findings.append(error) }
      after = Array(row.values.prefix(2)) + LedgerWalk.end(of: .max)
    }
    return found
  }

  private mutating func go(
    along replica: ReplicaID, _ take: (LedgerRun, VersionVector) throws -> Void
  ) throws {
    var errands = [Errand(replica: replica, goal: .max)]
    while let errand = errands.last {
      heads[errand.replica]?.isUnderWay = true
      if let other = try step(errand, take) {
        errands.append(other)
      } else if try next(of: errand.replica).map({ $0.run.first > errand.goal }) ?? true {
        heads[errand.replica]?.isUnderWay = false
        errands.removeLast()
      }
    }
  }

  /// Takes the chain's next run, or answers which other has to come before.
  private mutating func step(
    _ errand: Errand, _ take: (LedgerRun, VersionVector) throws -> Void
  ) throws -> Errand? {
    guard let (run, context) = try next(of: errand.replica), run.first <= errand.goal else { return nil }
    for (other, position) in context.sorted where other != errand.replica && heads[other]?.isUnderWay == false {
      if let ahead = try next(of: other), ahead.run.first <= position.sequence {
        return Errand(replica: other, goal: position.sequence)
      }
    }
    try take(run, context)
    heads[errand.replica]?.after = run.row.key
    heads[errand.replica]?.next = nil
    return nil
  }

  private mutating func next(of replica: ReplicaID) throws -> (run: LedgerRun, context: VersionVector)? {
    guard let head = heads[replica], !head.isAtEnd else { return nil }
    if let next = head.next { return next }
    if head.rows.isEmpty { try read(replica) }
    guard let row = heads[replica]?.rows.popFirst() else {
      heads[replica]?.isAtEnd = true
      return nil
    }
    buffered -= LedgerWalk.byteCount(row)
    do {
      let run = try LedgerRun(row)
      let next = (run, try contexts.context(of: run))
      heads[replica]?.next = next
      return next
    } catch let finding as LedgerFinding {
      findings.append(finding)
      heads[replica]?.isAtEnd = true
      return nil
    }
  }

  private mutating func read(_ replica: ReplicaID) throws {
    guard let after = heads[replica]?.after else { return }
    if buffered > LedgerWalk.byteLimit {
      for other in heads.keys { heads[other]?.rows = [] }
      buffered = 0
    }
    let rows = try tables.page(of: .runs, after: after, rows: LedgerWalk.rowLimit)
      .prefix { Array($0.key.prefix(2)) == Array(after.prefix(2)) }
    heads[replica]?.rows = rows[...]
    buffered += rows.reduce(0) { $0 + LedgerWalk.byteCount($1) }
  }

  private static func byteCount(_ row: LedgerRow) -> Int {
    row.values.reduce(0) { if case .bytes(let bytes) = $1 { $0 + bytes.count } else { $0 } }
  }
}
