import CSQLite
import Replication
import Testing

@testable import Storage

@Suite struct StoreTests {
  private let directory: TemporaryDirectory
  private let store: Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try directory.open()
  }

  @Test("the log has SQLite's words and number of an error, nothing of the statement; people read no number")
  func sentences() {
    for code in [SQLITE_NOTADB, SQLITE_CORRUPT, SQLITE_FULL, SQLITE_READONLY, SQLITE_IOERR, SQLITE_ERROR] {
      let error = SQLiteError(
        extendedCode: code, message: "its words", operation: "step", sql: "CREATE TABLE documents (id INTEGER)")
      let (line, sentence) = (StoreError(error).description, StoreError(error).sentence)
      #expect(line.contains("its words") && (code == SQLITE_READONLY || line.contains("(SQLite \(code))")), "\(line)")
      #expect(!line.contains("step") && !line.contains("CREATE"), "\(line)")
      #expect(!sentence.contains("SQLite") && !sentence.contains { $0.isNumber }, "\(sentence)")
    }
  }

  @Test("partitions and chains come back as they were written, with their counters")
  func partitionsAndChains() throws {
    let received = ChainMark(sequence: 5, hash: digest(50))
    let accepted = ChainMark(sequence: 3, hash: digest(30))
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      try transaction.appendRun(place.chain, first: 1, last: 5, context: vector([:]), body: [1, 2, 3])
      try transaction.setMarks(of: place.chain, received: received, accepted: accepted, holdReason: "unknown-kind")
      #expect(try transaction.insertNew(place.partition, place.collection, key: [6, 1, 0], state: [1]))
      #expect(try transaction.insertNew(place.partition, place.collection, key: [6, 2, 0], isAlive: false, state: [1]))
    }
    let partition = try #require(try store.partitions().first)
    #expect(partition.id == partitionID(1) && partition.name?.text == "agency=Test")
    #expect(partition.counters == Counters(documents: 1, changes: 5, logBytes: 3))
    #expect(store.counters == partition.counters)
    let chain = try #require(try store.chains().first)
    #expect(chain.replica == replica(1) && chain.received == received && chain.accepted == accepted)
    #expect(chain.holdReason == "unknown-kind")
    #expect(try store.chains(of: partition.number) == [chain])
  }

  @Test("a partition met by its id alone learns its name once")
  func learnsName() throws {
    let name = try PartitionName("user=42")
    try store.write(.full) { _ = try $0.number(of: partitionID(3)) }
    #expect(try store.partition(partitionID(3))?.name == nil)
    try store.write(.full) { _ = try $0.number(of: partitionID(3), name: name) }
    try store.write(.full) { _ = try $0.number(of: partitionID(3), name: PartitionName("user=43")) }
    #expect(try store.partition(partitionID(3))?.name == name)
  }

  @Test("a transaction that throws leaves no trace, in the file or in memory")
  func rollsBack() throws {
    struct Refused: Error {}
    #expect(throws: Refused.self) {
      try store.write(.full) { transaction in
        let place = try Place(transaction)
        try transaction.appendRun(place.chain, first: 1, last: 1, context: vector([7: 7]), body: [1])
        #expect(try transaction.insertNew(place.partition, place.collection, key: [6, 0], state: [1]))
        throw Refused()
      }
    }
    #expect(try store.partitions().isEmpty && store.chains().isEmpty)
    #expect(store.counters == Counters())
    try store.write(.full) { transaction in
      let place = try Place(transaction)
      try transaction.appendRun(place.chain, first: 1, last: 1, context: vector([7: 7]), body: [1])
    }
    let chain = try #require(try store.chains().first)
    #expect(try store.lastRun(of: chain.number)?.context == vector([7: 7]))
    #expect(store.counters == Counters(changes: 1, logBytes: 1))
    #expect(try store.partitions().first?.counters == store.counters)
  }

  @Test("statements are kept once each, in order of arrival")
  func statements() throws {
    let added = try store.write(.full) { transaction in
      [
        try transaction.addStatement(id: digest(2), encoded: [2]),
        try transaction.addStatement(id: digest(1), encoded: [1]),
        try transaction.addStatement(id: digest(2), encoded: [3]),
      ]
    }
    #expect(added == [true, true, false])
    #expect(try store.statements().map(\.encoded) == [[2], [1]])
  }

  @Test("subscriptions compare as bytes: two spellings of é are two patterns (D5)")
  func subscriptions() throws {
    try store.write(.full) { transaction in
      for pattern in ["caf\u{e9}=*", "cafe\u{301}=*", "caf\u{e9}=*", "agency=*"] as [Text] {
        try transaction.subscribe(pattern)
      }
      try transaction.unsubscribe("agency=*")
    }
    #expect(try store.subscriptions() == ["cafe\u{301}=*", "caf\u{e9}=*"])
  }

  @Test("of a peer's addresses the last four are kept, latest first")
  func peerAddresses() throws {
    let (near, far) = (DeviceID(digest(5)), DeviceID(digest(6)))
    try store.write(.full) { transaction in
      for time in 1...6 as ClosedRange<Int64> {
        try transaction.noteContact(near, address: "10.0.0.\(time):7000", time: time)
      }
      try transaction.noteContact(near, address: "10.0.0.4:7000", time: 9)
      try transaction.noteContact(far, address: nil, time: 20)
    }
    let peers = try store.peers()
    #expect(peers.map(\.device) == [far, near])
    #expect(peers.map(\.lastContact) == [20, 9])
    let kept = ["10.0.0.4:7000", "10.0.0.6:7000", "10.0.0.5:7000", "10.0.0.3:7000"]
    #expect(peers.map { $0.addresses.map(\.text) } == [[], kept])
  }

  private func key(_ device: UInt64, _ payload: UInt64 = 1) -> StagedKey {
    StagedKey(device: DeviceID(digest(device)), partition: PartitionID(digest(9)), hash: digest(payload))
  }

  @Test("pieces of a payload join, those of each device apart")
  func stagedPieces() throws {
    let payload = (0..<100).map { UInt8($0) }
    let first = StagedShare(key(1), total: 100, byteCount: 30)
    let other = StagedShare(key(2), total: 100, byteCount: 20)
    let whole = StagedShare(key(1), total: 100, byteCount: 100, isWhole: true)
    try store.write(.full) { transaction in
      try transaction.addPiece(payload[..<30], to: first)
      try transaction.addPiece([UInt8](repeating: 1, count: 20)[...], to: other)
    }
    #expect(try store.stagedShares() == [first, other] && store.stagedBytes(key(1)) == Array(payload[..<30]))
    try store.write(.full) { try $0.addPiece(payload[30...], to: whole) }
    #expect(try store.stagedShares() == [whole, other] && store.stagedBytes(key(1)) == payload)
    try store.write(.full) { try $0.removePieces(key(1)) }
    #expect(try store.stagedShares() == [other] && store.stagedBytes(key(1)).isEmpty)
    #expect(try store.database.integer("SELECT count(*) FROM staged_pieces") == 1)
  }

  @Test("how far staged payloads have come is told without reading them")
  func stagedShares() throws {
    let piece = [UInt8](repeating: 1, count: 64 * 1024)
    try store.write(.full) { transaction in
      for number in 0..<4 as Range<UInt64> {
        for index in 1...20 {
          let share = StagedShare(key(1, number), total: 1 << 22, byteCount: UInt64(index * piece.count))
          try transaction.addPiece(piece[...], to: share)
        }
      }
    }
    let before = pageVisits()
    let staged = try store.stagedShares()
    #expect(staged.map(\.byteCount) == [UInt64](repeating: UInt64(20 * piece.count), count: 4))
    #expect(pageVisits() - before < 20, "a piece alone fills four pages")
  }

  /// Pages that the writing connection has asked for.
  private func pageVisits() -> Int {
    [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS].reduce(0) { sum, counter in
      var (current, highest): (Int32, Int32) = (0, 0)
      sqlite3_db_status(store.database.handle, counter, &current, &highest, 0)
      return sum + Int(current)
    }
  }

  @Test("facts about the store come back, and go")
  func meta() throws {
    try store.write(.full) { transaction in
      try transaction.setInteger(.max, for: .timestamp)
      try transaction.setMeta([1, 2], for: .restored)
    }
    #expect(try store.integer(.timestamp) == .max && store.meta(.restored) == [1, 2])
    try store.write(.full) { try $0.setMeta(nil, for: .restored) }
    #expect(try store.meta(.restored) == nil)
  }

  @Test("a sequence that no store can hold is refused, not wrapped")
  func hugeSequence() throws {
    #expect(throws: StoreError.outOfRange(what: "sequence", value: .max)) {
      try store.write(.full) { transaction in
        let place = try Place(transaction)
        try transaction.appendRun(place.chain, first: .max, last: .max, context: vector([:]), body: [1])
      }
    }
  }
}
