import Replication

extension Transaction {
  /// Puts a run at the end of the log and answers its place in the order of arrival. The chain's marks are the caller's
  /// to move (``setMarks(of:received:accepted:holdReason:)``), in the same transaction.
  ///
  /// `body` is kept as it is; the context is kept beside it, as its differences from an earlier one where that is
  /// shorter. `arrived`: when it came, by this node's clock; 0 where that is not known.
  @discardableResult
  package func appendRun(
    _ chain: ChainNumber, first: UInt64, last: UInt64, context: VersionVector, body: ArraySlice<UInt8>,
    arrived: Int64 = 0
  ) throws(StoreError) -> Int64 {
    precondition(first > 0 && first <= last, "a run from \(first) to \(last)")
    let insert = try database.statement(
      """
      INSERT INTO runs (arrival, chain, first, last, context_base, context, body, arrived, sum)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
      """)
    let arrival = store.end.arrival + 1
    let stored = encode(context, of: chain)
    try insert.bind(1, arrival)
    try insert.bind(2, chain.rawValue)
    try insert.bind(3, try Transaction.integer(first, "sequence"))
    try insert.bind(4, try Transaction.integer(last, "sequence"))
    try insert.bind(5, stored.base)
    try insert.bind(6, copied: stored.bytes)
    try insert.bind(8, arrived)
    try body.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      let sum = stored.bytes.span.bytes.withUnsafeBytes {
        RowSum(
          ofRun: arrival, of: chain.rawValue, Int64(clamping: first), Int64(clamping: last), base: stored.base,
          context: $0, body: bytes)
      }
      try insert.bind(9, sum.value)
      try insert.bind(7, borrowed: bytes)
      try insert.run()
    }
    store.end.arrival = arrival
    if let base = stored.base {
      store.contexts.countUse(of: base, in: chain.partition)
    } else {
      store.contexts.add(ContextCache.Base(arrival: arrival, context: context, uses: 0), to: chain.partition)
    }
    count(Counters(changes: Int64(clamping: last - first + 1), logBytes: Int64(body.count)), in: chain.partition)
    return arrival
  }

  /// Puts a run in the place of one that is not as it was written: of the same chain and numbers, with its whole context beside
  /// it. The caller knows that it is the same.
  package func replaceRun(
    at arrival: Int64, of chain: ChainNumber, first: UInt64, last: UInt64, context: VersionVector,
    body: ArraySlice<UInt8>
  ) throws(StoreError) {
    let update = try database.statement(
      """
      UPDATE runs SET context_base=NULL, context=?5, body=?6, sum=?7, first=?3
      WHERE arrival=?1 AND chain=?2 AND last=?4
      """)
    let context = StoredContext.encode(context)
    let (first, last) = (try Transaction.integer(first, "sequence"), try Transaction.integer(last, "sequence"))
    // The chain or the number that its row has may be what is damaged: readers of another run would find this one there.
    guard try isIndexed(arrival, of: chain.rawValue, endingAt: last) else {
      throw .damagedLog("run \(arrival) is not where its index has it")
    }
    try update.bind(1, arrival)
    try update.bind(2, chain.rawValue)
    try update.bind(3, first)
    try update.bind(4, last)
    try update.bind(5, copied: context)
    try body.span.bytes.withUnsafeBytes { (bytes) throws(StoreError) in
      let sum = context.span.bytes.withUnsafeBytes {
        RowSum(ofRun: arrival, of: chain.rawValue, first, last, base: nil, context: $0, body: bytes)
      }
      try update.bind(6, borrowed: bytes)
      try update.bind(7, sum.value)
      try update.run()
    }
    guard database.changedRows == 1 else { throw .damagedLog("run \(arrival) is not where it was") }
    numbers.bodies.forget()
  }

  private func encode(_ context: VersionVector, of chain: ChainNumber) -> (base: Int64?, bytes: [UInt8]) {
    let wholeByteCount = context.count * StoredContext.entryByteCount
    for base in store.contexts[chain.partition] where base.uses < StoredContext.fullInterval - 1 {
      let differences = StoredContext.encode(context, from: base.context)
      if differences.isEmpty || differences.count < wholeByteCount / 2 { return (base.arrival, differences) }
    }
    return (nil, StoredContext.encode(context))
  }
}
