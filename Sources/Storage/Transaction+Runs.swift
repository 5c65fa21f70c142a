import Replication

extension Transaction {
  /// Puts a run at the end of the log and answers its place in the order of arrival. The chain's marks are the caller's
  /// to move (``setMarks(of:received:accepted:holdReason:)``), in the same transaction.
  ///
  /// `body` is kept as it is; the context is kept beside it, as its differences from an earlier one where that is
  /// shorter.
  @discardableResult
  package func appendRun(
    _ chain: ChainNumber, first: UInt64, last: UInt64, context: VersionVector, body: ArraySlice<UInt8>
  ) throws(StoreError) -> Int64 {
    precondition(first > 0 && first <= last, "a run from \(first) to \(last)")
    let insert = try database.statement(
      """
      INSERT INTO runs (arrival, chain, first, last, context_base, context, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """)
    let arrival = store.nextArrival
    let stored = encode(context, of: chain)
    try insert.bind(1, arrival)
    try insert.bind(2, chain.rawValue)
    try insert.bind(3, try Transaction.integer(first, "sequence"))
    try insert.bind(4, try Transaction.integer(last, "sequence"))
    try insert.bind(5, stored.base)
    try insert.bind(6, copied: stored.bytes)
    try body.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      try insert.bind(7, borrowed: bytes)
      try insert.run()
    }
    store.nextArrival = arrival + 1
    if stored.base == nil {
      store.contexts.set(ContextCache.Base(arrival: arrival, context: context, uses: 0), for: chain)
    } else {
      store.contexts.countUse(of: chain)
    }
    count(Counters(changes: Int64(clamping: last - first + 1), logBytes: Int64(body.count)), in: chain.partition)
    return arrival
  }

  private func encode(_ context: VersionVector, of chain: ChainNumber) -> (base: Int64?, bytes: [UInt8]) {
    guard let base = store.contexts[chain], base.uses < StoredContext.fullInterval - 1 else {
      return (nil, StoredContext.encode(context))
    }
    let differences = StoredContext.encode(context, from: base.context)
    guard differences.count < context.count * StoredContext.entryByteCount / 2 || differences.isEmpty else {
      return (nil, StoredContext.encode(context))
    }
    return (base.arrival, differences)
  }

  /// Takes away the runs of a chain that hold changes above `sequence`, where another branch is chosen. Answers them,
  /// as they were, for setting aside; documents are the caller's to rebuild.
  package func removeRuns(of chain: ChainNumber, after sequence: UInt64) throws(StoreError) -> [StoredRun] {
    let removed = try runs(of: chain, after: sequence, byteLimit: .max)
    let delete = try database.statement("DELETE FROM runs WHERE chain=?1 AND last>?2")
    try delete.bind(1, chain.rawValue)
    try delete.bind(2, Int64(clamping: sequence))
    try delete.run()
    // Only what comes later refers to a context, so nothing that stays has lost its base.
    store.contexts.forget(chain)
    for run in removed {
      count(
        Counters(changes: -Int64(clamping: run.last - run.first + 1), logBytes: -Int64(run.body.count)),
        in: chain.partition)
    }
    return removed
  }

  /// Keeps a header known without its content. One that is there already stays. At most
  /// ``StoredForkHeader/countLimit`` per chain.
  package func addForkHeader(_ header: StoredForkHeader, of chain: ChainNumber) throws(StoreError) {
    let present = try database.statement("SELECT count(*) FROM fork_headers WHERE chain=?1")
    try present.bind(1, chain.rawValue)
    let count = try present.step() ? present.integer(0) : 0
    present.reset()
    guard count < StoredForkHeader.countLimit else {
      throw .limitReached(what: "headers of forked chains", limit: StoredForkHeader.countLimit)
    }
    let insert = try database.statement(
      "INSERT INTO fork_headers (chain, sequence, hash, header) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
    try insert.bind(1, chain.rawValue)
    try insert.bind(2, try Transaction.integer(header.sequence, "sequence"))
    try insert.bind(3, copied: header.hash.bytes)
    try insert.bind(4, copied: header.header)
    try insert.run()
  }

  package func removeForkHeaders(of chain: ChainNumber) throws(StoreError) {
    let delete = try database.statement("DELETE FROM fork_headers WHERE chain=?1")
    try delete.bind(1, chain.rawValue)
    try delete.run()
  }
}

extension StoredForkHeader {
  /// Headers of one chain: a device that makes forks without end must not fill the disk of others.
  package static let countLimit = 4_096
}
