import Foundation
import Replication
import Testing
import TestSupport

@testable import Identity

@Suite struct ReplicaSidecarTests {
  private static let host = HostFacts(machine: SHA256.hash([1]), databaseInode: 4711)
  private static let complete = ReplicaSidecar(
    store: UUIDValue(high: 1, low: 2),
    replica: .init(id: ReplicaID(high: 3, low: 4), nonce: UUIDValue(high: 5, low: 6)), reached: 123_456, host: host)
  private static let withResting = {
    var sidecar = complete
    sidecar.resting = (7..<9).map { number in
      ReplicaSidecar.Resting(
        incarnation: .init(id: ReplicaID(high: number, low: 4), nonce: UUIDValue(high: number, low: 6)),
        ends: SHA256.hash([UInt8(number)]))
    }
    return sidecar
  }()
  private static let fresh = ReplicaSidecar(
    store: UUIDValue(high: 1, low: 2), replica: nil, reached: 0, host: HostFacts(machine: nil, databaseInode: .max))

  @Test("what was saved is loaded, before and after the first write", arguments: [complete, withResting, fresh])
  func roundTrip(sidecar: ReplicaSidecar) throws {
    try withTemporaryDirectory { directory in
      #expect(try ReplicaSidecar.load(from: directory) == .absent)
      try sidecar.save(to: directory)
      #expect(try ReplicaSidecar.load(from: directory) == .present(sidecar))
      var later = sidecar
      later.reached += 1_000
      try later.save(to: directory)
      #expect(try ReplicaSidecar.load(from: directory) == .present(later))
      #expect(try mode(of: directory.file("replica.state")) == 0o600)
    }
  }

  @Test("what the log is to hold is kept, and a file of version 1, which does not say, speaks of a closed one")
  func log() throws {
    for log in [RenewalEvidence.Sidecar.Log.open, .closed, .lost] {
      var sidecar = Self.complete
      (sidecar.log, sidecar.starts) = (log, 17)
      #expect(ReplicaSidecar.parse(Array(sidecar.text.utf8)) == .present(sidecar))
    }
    let fields = [
      ("store", Self.complete.store.text), ("replica", ReplicaID(high: 3, low: 4).text),
      ("nonce", UUIDValue(high: 5, low: 6).text), ("reached", "123456"),
      ("machine", Self.host.machineText.string), ("inode", "4711"),
    ]
    let first = FieldFile(title: "Seamesh replica state, version 1", fields: fields)
    #expect(ReplicaSidecar.parse(Array(first.text.utf8)) == .present(Self.complete))
    let second = FieldFile(title: "Seamesh replica state, version 2", fields: fields)
    #expect(ReplicaSidecar.parse(Array(second.text.utf8)) == .damaged(reason: "its 'log' is missing or wrong"))
  }

  @Test("an id that rests and is named otherwise than here costs no more than itself") func restingOtherwise() {
    let text = Self.withResting.text
    let fields = text.split(separator: "\n").compactMap { line -> (name: String, value: String)? in
      let parts = line.split(separator: ": ", maxSplits: 1).map(String.init)
      return parts.count == 2 && !line.hasPrefix("#") && parts[0] != "check" ? (parts[0], parts[1]) : nil
    }
    func parsed(_ change: (String) -> String) -> ReplicaSidecar.Loaded {
      let changed = fields.map { ($0.name, $0.name == "resting" ? change($0.value) : $0.value) }
      return ReplicaSidecar.parse(
        Array(FieldFile(title: "Seamesh replica state, version 2", fields: changed).text.utf8))
    }
    #expect(parsed { $0 } == .present(Self.withResting))
    var without = Self.withResting
    without.resting = []
    for change in [{ String($0.dropLast()) }, { $0 + " 1" }, { _ in "none" }] as [(String) -> String] {
      #expect(parsed(change) == .present(without))
    }
  }

  @Test("a file cut anywhere is damaged, and one with any bit turned is damaged or says the same")
  func damage() throws {
    let whole = Array(Self.withResting.text.utf8)
    for count in 0..<whole.count { #expect(isDamaged(ReplicaSidecar.parse(Array(whole.prefix(count)))), "\(count)") }
    for place in whole.indices {
      for bit in 0..<8 {
        var bytes = whole
        bytes[place] ^= 1 << UInt8(bit)
        let loaded = ReplicaSidecar.parse(bytes)
        #expect(isDamaged(loaded) || loaded == .present(Self.withResting), "byte \(place), bit \(bit)")
      }
    }
  }

  @Test("random bytes and an oversized file are damage, not errors")
  func noise() throws {
    var generator = SplitMix64(seed: 0x51de)
    for _ in 0..<500 {
      #expect(isDamaged(ReplicaSidecar.parse(generator.bytes(Int.random(in: 0..<300, using: &generator)))))
    }
    try withTemporaryDirectory { directory in
      try PrivateFile.create(directory.file("replica.state"), [])
      try overwrite(directory.file("replica.state"), with: [UInt8](repeating: 35, count: PrivateFile.byteLimit + 1))
      #expect(isDamaged(try ReplicaSidecar.load(from: directory)))
    }
  }

  @Test("a replica without its nonce is damage")
  func half() {
    let file = FieldFile(
      title: "Seamesh replica state, version 1",
      fields: [
        ("store", UUIDValue.zero.text), ("replica", ReplicaID.zero.text), ("nonce", "none"), ("reached", "1"),
        ("machine", "none"), ("inode", "1"),
      ])
    #expect(ReplicaSidecar.parse(Array(file.text.utf8)) == .damaged(reason: "its 'replica' is missing or wrong"))
  }

  private func isDamaged(_ loaded: ReplicaSidecar.Loaded) -> Bool {
    if case .damaged = loaded { true } else { false }
  }
}

@Suite struct HostFactsTests {
  @Test("a copy of the database has another inode, a rewritten one has not")
  func inode() throws {
    try withTemporaryDirectory { directory in
      let (database, copy) = (directory.file("db"), directory.file("copy"))
      try PrivateFile.create(database, [1, 2, 3])
      let first = try HostFacts.current(database: database)
      try overwrite(database, with: [4])
      #expect(try HostFacts.current(database: database) == first)
      try FileManager.default.copyItem(atPath: database, toPath: copy)
      #expect(try HostFacts.current(database: copy).databaseInode != first.databaseInode)
      #expect(throws: FileError.missing(path: directory.file("none"))) {
        try HostFacts.current(database: directory.file("none"))
      }
    }
  }

  @Test(
    "where files get other numbers at each mount, as on FAT, the number is no evidence",
    arguments: [0x4d44, 0x2011_bab0, 0x6573_5546])
  func passingNumbers(kind: UInt64) throws {
    try withTemporaryDirectory { directory in
      let database = directory.file("db")
      try PrivateFile.create(database, [1, 2, 3])
      let mounted = try HostFacts.current(database: database, fileSystem: { _ in kind })
      try FileManager.default.removeItem(atPath: database)
      try PrivateFile.create(directory.file("other"), [4])
      try PrivateFile.create(database, [1, 2, 3])
      #expect(try HostFacts.current(database: database, fileSystem: { _ in kind }) == mounted)
      // ext4 and overlay, and where nobody knows.
      for kind in [0xef53, 0x794c_7630, nil] as [UInt64?] {
        #expect(try HostFacts.current(database: database, fileSystem: { _ in kind }).databaseInode != 0)
      }
      #expect(HostFacts.fileSystem(of: database) != nil && HostFacts.fileSystem(of: directory.file("none")) == nil)
    }
  }

  @Test("the machine id is hashed; the first of its places that has one counts; none is no error")
  func machine() throws {
    try withTemporaryDirectory { directory in
      let (first, second) = (directory.file("machine-id"), directory.file("other"))
      try PrivateFile.create(first, Array("5f3a9c\n".utf8))
      try PrivateFile.create(second, Array("aaaa\n".utf8))
      func machine(_ paths: [String]) throws -> Digest? {
        try HostFacts.current(database: first, machineIDPaths: paths).machine
      }
      let known = try #require(try machine([first]))
      #expect(try machine([first, second]) == known)
      #expect(try machine([directory.file("none"), first]) == known)
      #expect(try machine([second]) != known)
      #expect(try machine([]) == nil)
      try overwrite(first, with: Array("uninitialized\n".utf8))
      #expect(try machine([first]) == nil)
      #expect(!known.text.contains("5f3a9c"))
    }
  }
}

/// Each cause of rule C20 that can be seen on this machine; the last, a peer that knows more, is the session's to find.
@Suite struct RenewalTests {
  private func store(ownCommits: UInt64 = 1_000) -> RenewalEvidence.Store {
    RenewalEvidence.Store(id: UUIDValue(high: 1, low: 2), ownCommits: ownCommits)
  }

  /// Saves a sidecar for `store`, lets `change` tamper with things, and asks for causes.
  private func causes(
    _ tamper: (inout RenewalEvidence.Store, _ database: String, DataDirectory) throws -> Void
  ) throws -> [RenewalCause] {
    try withTemporaryDirectory { directory in
      let database = directory.file("store.db")
      try PrivateFile.create(database, [1])
      try PrivateFile.create(directory.file("machine-id"), Array("first".utf8))
      func host() throws -> HostFacts {
        try HostFacts.current(database: database, machineIDPaths: [directory.file("machine-id")])
      }
      var store = store()
      let sidecar = ReplicaSidecar(store: store.id, replica: nil, reached: 1_000, host: try host())
      try sidecar.save(to: directory)
      try tamper(&store, database, directory)
      return try ReplicaSidecar.load(from: directory).renewalCauses(store: store, host: try host())
    }
  }

  @Test("a restart, clean or not, is no cause, and neither are commits beyond the mark")
  func none() throws {
    #expect(try causes { _, _, _ in }.isEmpty)
    #expect(try causes { store, _, _ in store.ownCommits = 1_999 }.isEmpty)
  }

  @Test("an open log that was empty, or ends before the start that opened it, is a cause; a closed one is none")
  func lostLog() throws {
    func causes(_ log: RenewalEvidence.Sidecar.Log, wasEmpty: Bool, starts: UInt64) throws -> [RenewalCause] {
      try self.causes { store, database, directory in
        (store.wasLogEmpty, store.starts) = (wasEmpty, starts)
        let host = try HostFacts.current(database: database, machineIDPaths: [directory.file("machine-id")])
        var sidecar = ReplicaSidecar(store: store.id, replica: nil, reached: 1_000, host: host)
        (sidecar.log, sidecar.starts) = (log, 5)
        try sidecar.save(to: directory)
      }
    }
    #expect(try causes(.open, wasEmpty: false, starts: 5).isEmpty)
    #expect(try causes(.open, wasEmpty: true, starts: 5) == [.log])
    #expect(try causes(.open, wasEmpty: false, starts: 4) == [.log])
    #expect(try causes(.closed, wasEmpty: true, starts: 4).isEmpty)
    #expect(try causes(.lost, wasEmpty: false, starts: 6) == [.log])
  }

  @Test("a database rolled back below the mark is a cause")
  func rolledBack() throws { #expect(try causes { store, _, _ in store.ownCommits = 999 } == [.reached]) }

  @Test("a database of another store is a cause")
  func otherStore() throws { #expect(try causes { store, _, _ in store.id = .zero } == [.storeID]) }

  @Test("a database copied over the old one is a cause")
  func copied() throws {
    let found = try causes { _, database, _ in
      // A second name keeps the old inode from being given to the copy.
      try FileManager.default.linkItem(atPath: database, toPath: database + ".old")
      try FileManager.default.removeItem(atPath: database)
      try PrivateFile.create(database, [1])
    }
    #expect(found == [.inode])
  }

  @Test("another machine is a cause, and so is one whose id is gone")
  func otherMachine() throws {
    #expect(try causes { try overwrite($2.file("machine-id"), with: Array("second".utf8)) } == [.machineID])
    #expect(try causes { try FileManager.default.removeItem(atPath: $2.file("machine-id")) } == [.machineID])
  }

  @Test("what the store itself reports is a cause")
  func reported() throws {
    #expect(try causes { store, _, _ in store.isRestored = true } == [.restored])
    #expect(try causes { store, _, _ in store.hadInputOutputError = true } == [.inputOutputError])
    #expect(try causes { store, _, _ in store.isCorrupt = true } == [.corruption])
  }

  @Test("a sidecar that is gone or damaged is a cause, beside the others")
  func sidecarGone() throws {
    #expect(try causes { try FileManager.default.removeItem(atPath: $2.file("replica.state")) } == [.storeID])
    #expect(try causes { try overwrite($2.file("replica.state"), with: []) } == [.storeID])
    let both = try causes { store, _, directory in
      store.isCorrupt = true
      try FileManager.default.removeItem(atPath: directory.file("replica.state"))
    }
    #expect(both == [.storeID, .corruption])
  }

  @Test("several causes at once are all named")
  func several() throws {
    let found = try causes { store, _, directory in
      store.ownCommits = 0
      try overwrite(directory.file("machine-id"), with: Array("second".utf8))
    }
    #expect(found == [.reached, .machineID])
  }
}
