import Engine
import Replication
import Testing

@testable import Storage

/// What the disk gives back otherwise than it was written.
@Suite struct RowSumTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  private func hash(_ bytes: [UInt8]) -> UInt64 {
    var sum = RowSum()
    bytes.withUnsafeBytes { sum.add($0) }
    return sum.hash
  }

  @Test("the sum is XXH64")
  func published() {
    #expect(hash([]) == 0xef46_db37_51d8_e999)
    #expect(hash(Array("a".utf8)) == 0xd24e_c4f1_a98c_6e5b)
    #expect(hash(Array("abc".utf8)) == 0x44bc_2cf5_ad77_0999)
    #expect(hash(Array("Nobody inspects the spammish repetition".utf8)) == 0xfbce_a83c_8a37_8bf1)
  }

  @Test("each of its parts counts, and where it ends")
  func parts() {
    func sum(_ parts: [[UInt8]]) -> RowSum {
      var sum = RowSum()
      for part in parts { part.withUnsafeBytes { sum.add($0) } }
      return sum
    }
    #expect(sum([[1, 2], [3]]) != sum([[1], [2, 3]]) && sum([[], [1]]) != sum([[1], []]))
    var (a, b) = (RowSum(), RowSum())
    a.add(1 as Int64)
    b.add(2 as Int64)
    #expect(a != b)
  }

  private func place() throws -> Place {
    var place: Place?
    try store.write(.full) { transaction in
      let made = try Place(transaction)
      place = made
      let base = try transaction.appendRun(
        made.chain, first: 1, last: 2, context: vector([2: 1, 3: 4, 4: 5]), body: Array("the first".utf8)[...])
      #expect(base == 1)
      try transaction.appendRun(
        made.chain, first: 3, last: 3, context: vector([2: 2, 3: 4, 4: 5]), body: Array("the second".utf8)[...])
      _ = try transaction.insertNew(made.partition, made.collection, key: [1, 2], state: [3, 4, 5])
    }
    return try #require(place)
  }

  private func flipped(_ column: String, of table: String, _ id: String, _ look: () throws -> Void) throws {
    let database = store.database
    let count = try #require(try database.integer("SELECT length(\(column)) FROM \(table) WHERE \(id)"))
    let kept = try #require(try database.string("SELECT hex(\(column)) FROM \(table) WHERE \(id)"))
    for index in 0..<Int(count) {
      var digits = Array(kept)
      digits[2 * index + 1] = Character(String((digits[2 * index + 1].hexDigitValue ?? 0) ^ 1, radix: 16))
      let spoiled = String(digits)
      try database.execute("UPDATE \(table) SET \(column)=x'\(spoiled)' WHERE \(id)")
      store.numbers.removeAll()
      try look()
    }
    try database.execute("UPDATE \(table) SET \(column)=x'\(kept)' WHERE \(id)")
    store.numbers.removeAll()
  }

  @Test(
    "any flipped bit of a run or of its context is noticed, and the place is named; what refers to the context reads not, either"
  )
  func runs() throws {
    let place = try place()
    let second = try #require(try store.run(at: 2, in: place.partition))
    for column in ["body", "context"] {
      try flipped(column, of: "runs", "arrival=1") {
        let error = #expect(throws: StoreError.self) { try store.run(at: 1, in: place.partition) }
        #expect(error?.runAtFault == DamagedRun(replica: replica(1), first: 1, last: 2, arrival: 1))
        #expect(error?.isOfOneRow == true)
        let behind = #expect(throws: StoreError.self) { try store.run(at: 2, in: place.partition) }
        #expect(behind?.runAtFault?.arrival == 1)
      }
    }
    #expect(try store.run(at: 2, in: place.partition) == second)
    try store.database.execute("UPDATE runs SET first=2 WHERE arrival=1")
    #expect(throws: StoreError.self) { try store.run(at: 1, in: place.partition) }
  }

  @Test("each run that is not as it was written is found by reading over, in parts, with its partition")
  func scrub() throws {
    let place = try place()
    try store.write(.full) { transaction in
      for number in 4...9 as ClosedRange<UInt64> {
        try transaction.appendRun(
          place.chain, first: number, last: number, context: vector([2: number]), body: [UInt8(number)][...])
      }
    }
    #expect(try store.scrub(after: 0, damagedBases: [], byteLimit: .max, countLimit: .max).damaged.isEmpty)
    try store.database.execute("UPDATE runs SET body=x'00' WHERE arrival IN (2, 5, 8)")
    store.numbers.removeAll()
    var (found, end, parts, bases): ([DamagedRun], Int64, Int, Set<Int64>) = ([], 0, 0, [])
    while true {
      let part = try store.scrub(after: end, damagedBases: bases, byteLimit: .max, countLimit: 3)
      for (partition, run) in part.damaged {
        #expect(partition == partitionID(1))
        found.append(run)
      }
      (end, parts, bases) = (part.end, parts + 1, part.damagedBases)
      if part.isAll { break }
    }
    #expect(found.map(\.arrival) == [2, 5, 8] && found.map(\.last) == [3, 6, 9] && parts == 3 && end == 8, "\(found)")
    let first = try store.scrub(after: 0, damagedBases: [], byteLimit: 1, countLimit: 9)
    #expect(first.end == 1 && !first.isAll && first.byteCount > 0)
  }

  /// Carries SQL out without the index of the log.
  private func beneathIndex(_ sql: String) throws {
    try store.database.execute(
      """
      PRAGMA writable_schema=ON;
      CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name='runs_by_chain';
      DELETE FROM sqlite_schema WHERE name='runs_by_chain';
      PRAGMA writable_schema=RESET;
      \(sql);
      PRAGMA writable_schema=ON;
      INSERT INTO sqlite_schema SELECT * FROM kept;
      PRAGMA writable_schema=RESET;
      DROP TABLE kept;
      """)
    store.numbers.removeAll()
  }

  @Test("a row that is not where its index has it is counted, and leads past nothing")
  func misplaced() throws {
    let place = try place()
    _ = try store.write(.full) { transaction in
      try transaction.appendRun(place.chain, first: 4, last: 4, context: vector([2: 9]), body: [4][...])
    }
    try beneathIndex("UPDATE runs SET last=9 WHERE arrival=2")
    let part = try store.scrub(after: 0, damagedBases: [], byteLimit: .max, countLimit: 2)
    #expect(part.misplacedCount == 1 && part.end == 2 && part.damaged.isEmpty && part.intact == [1])
    let rest = try store.scrub(after: 2, damagedBases: [], byteLimit: .max, countLimit: 2)
    #expect(rest.isAll && rest.end == 3 && rest.intact == [3] && rest.misplacedCount == 0)
  }

  @Test("a run whose row names another chain reads by its index, and no run of that other one takes its place")
  func otherChain() throws {
    let place = try place()
    var other: ChainNumber?
    try store.write(.full) { transaction in
      let chain = try transaction.number(of: replica(7), in: place.partition, genesis: Digest(words: (1, 1, 1, 1)))
      try transaction.appendRun(chain, first: 3, last: 3, context: vector([2: 9]), body: [4][...])
      other = chain
    }
    let chain = try #require(other)
    try beneathIndex("UPDATE runs SET chain=\(chain.rawValue) WHERE arrival=2")
    func read() throws -> [[UInt8]] { try store.runs(of: place.chain, after: 2, byteLimit: .max).map(\.body) }
    #expect(try read() == [Array("the second".utf8)])
    let told = #expect(throws: StoreError.self) { try store.run(at: 2, in: place.partition) }
    #expect(told?.runAtFault?.replica == replica(7))
    #expect(throws: StoreError.self) {
      try store.write(.full) { transaction in
        try transaction.replaceRun(at: 2, of: chain, first: 3, last: 3, context: vector([2: 9]), body: [4][...])
      }
    }
    #expect(try read() == [Array("the second".utf8)])
  }

  @Test("a run whose context refers to a damaged one is found with it, in whatever part it lies")
  func damagedBase() throws {
    _ = try place()
    try store.database.execute("UPDATE runs SET body=x'00' WHERE arrival=1")
    store.numbers.removeAll()
    let first = try store.scrub(after: 0, damagedBases: [], byteLimit: .max, countLimit: 1)
    #expect(first.damaged.map(\.run.arrival) == [1] && first.damagedBases == [1])
    let second = try store.scrub(after: 1, damagedBases: [1], byteLimit: .max, countLimit: 1)
    #expect(second.damaged.map(\.run.arrival) == [2] && second.damagedBases == [1] && second.intact.isEmpty)
  }

  @Test("of a damaged run that number is told as its first which was written, wherever the bit has flipped")
  func firstNumber() throws {
    let place = try place()
    func body(_ first: UInt8) -> [UInt8] { [0x82, 0x50] + [UInt8](repeating: 7, count: 16) + [first] }
    func literal(_ first: UInt8) -> String { "x'8250\(String(repeating: "07", count: 16))0\(first)'" }
    _ = try store.write(.full) { transaction in
      try transaction.appendRun(place.chain, first: 4, last: 6, context: vector([2: 2]), body: body(4)[...])
    }
    let run = try #require(try store.run(at: 3, in: place.partition))
    func told() throws -> [UInt64] {
      try store.scrub(after: 2, damagedBases: [], byteLimit: .max, countLimit: 1).damaged.map(\.run.first)
    }
    try store.database.execute("UPDATE runs SET body=\(literal(3)) WHERE arrival=3")
    #expect(try told() == [4], "in the body")
    try store.database.execute("UPDATE runs SET first=1, body=\(literal(4)) WHERE arrival=3")
    #expect(try told() == [4], "in the row")
    try store.write(.full) { transaction in
      try transaction.replaceRun(
        at: 3, of: place.chain, first: 4, last: 6, context: run.context, body: run.body[...])
    }
    store.numbers.removeAll()
    #expect(try store.run(at: 3, in: place.partition) == run && told().isEmpty)
  }

  @Test("a run that is put back reads as it did, with all that refers to it")
  func putBack() throws {
    let place = try place()
    let runs = try store.runs(of: place.chain, after: 0, byteLimit: .max)
    try store.database.execute("UPDATE runs SET body=x'00', context=x'00'")
    store.numbers.removeAll()
    try store.write(.full) { transaction in
      for run in runs {
        try transaction.replaceRun(
          at: run.arrival, of: place.chain, first: run.first, last: run.last, context: run.context, body: run.body[...])
      }
    }
    #expect(try store.runs(of: place.chain, after: 0, byteLimit: .max) == runs)
    #expect(throws: StoreError.self) {
      try store.write(.full) {
        try $0.replaceRun(at: 1, of: place.chain, first: 1, last: 9, context: runs[0].context, body: [][...])
      }
    }
  }

  @Test("any flipped bit of a document is noticed, whichever way it is read")
  func documents() throws {
    let place = try place()
    #expect(try store.document(place.partition, place.collection, key: [1, 2])?.isIntact == true)
    try flipped("state", of: "documents", "id=1") {
      #expect(try store.document(place.partition, place.collection, key: [1, 2])?.isIntact == false)
      let rows = try store.documents(place.partition, place.collection, after: nil, limit: 9, byteLimit: .max)
      #expect(rows.map(\.isIntact) == [false])
      #expect(throws: StoreError.self) { try DocumentState(stored: rows[0]) }
    }
    try store.database.execute("UPDATE documents SET alive=0")
    #expect(try store.document(place.partition, place.collection, key: [1, 2])?.isIntact == false)
  }

  @Test("any flipped bit of a payload that travels apart is noticed")
  func payloads() throws {
    try store.write(.full) { try $0.addLargePayload(digest(7), bytes: [1, 2, 3, 4, 5][...]) }
    #expect(try store.largePayload(digest(7)) == [1, 2, 3, 4, 5])
    try flipped("bytes", of: "large_payloads", "id=1") {
      #expect(throws: StoreError.self) { try store.largePayload(digest(7)) }
    }
  }

  @Test("what an earlier build wrote has no sums and is read as it is; what is written since has them")
  func withoutSums() throws {
    let older = try TemporaryDirectory()
    try {
      let store = try older.open { $0.migrations = [.first, .holdings] }
      try store.database.execute(
        """
        INSERT INTO partitions (id, hash, name) VALUES (1, zeroblob(32), 'p=1');
        INSERT INTO chains (id, partition, replica, received_hash, accepted_hash)
          VALUES (1, 1, zeroblob(16), zeroblob(32), zeroblob(32));
        INSERT INTO collections (id, name) VALUES (1, 'c');
        INSERT INTO runs (arrival, chain, first, last, arrived, context, body) VALUES (1, 1, 1, 1, 0, x'', x'07');
        INSERT INTO documents (partition, collection, key, alive, state) VALUES (1, 1, x'01', 1, x'02');
        """)
    }()
    let store = try older.open()
    let partition = PartitionNumber(rawValue: 1)
    #expect(try store.run(at: 1, in: partition)?.body == [7])
    let row = try #require(try store.document(partition, CollectionNumber(rawValue: 1), key: [1]))
    #expect(row.isIntact)
    try store.write(.full) {
      try $0.replace(row, in: partition, CollectionNumber(rawValue: 1), isAlive: true, state: [3])
    }
    #expect(try store.database.integer("SELECT count(*) FROM documents WHERE sum IS NULL") == 0)
    #expect(try store.document(partition, CollectionNumber(rawValue: 1), key: [1])?.isIntact == true)
  }
}
