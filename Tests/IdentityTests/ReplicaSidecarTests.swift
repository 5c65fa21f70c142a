import Foundation
import Replication
import Testing

@testable import Identity

@Suite struct ReplicaSidecarTests {
  private static let host = HostFacts(machine: SHA256.hash([1]), databaseInode: 4711)
  private static let complete = ReplicaSidecar(
    store: UUIDValue(high: 1, low: 2),
    replica: .init(id: ReplicaID(high: 3, low: 4), nonce: UUIDValue(high: 5, low: 6)), reached: 123_456, host: host)
  private static let fresh = ReplicaSidecar(
    store: UUIDValue(high: 1, low: 2), replica: nil, reached: 0, host: HostFacts(machine: nil, databaseInode: .max))

  @Test("what was saved is loaded, before and after the first write", arguments: [complete, fresh])
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

  @Test("a file cut anywhere is damaged, and one with any bit turned is damaged or says the same")
  func damage() throws {
    let whole = Array(Self.complete.text.utf8)
    for count in 0..<whole.count { #expect(isDamaged(ReplicaSidecar.parse(Array(whole.prefix(count)))), "\(count)") }
    for place in whole.indices {
      for bit in 0..<8 {
        var bytes = whole
        bytes[place] ^= 1 << UInt8(bit)
        let loaded = ReplicaSidecar.parse(bytes)
        #expect(isDamaged(loaded) || loaded == .present(Self.complete), "byte \(place), bit \(bit)")
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
