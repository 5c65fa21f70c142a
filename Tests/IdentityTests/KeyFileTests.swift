import Foundation
import Replication
import Testing

@testable import Identity

@Suite struct KeyFileTests {
  @Test("keys come back from their files", arguments: [KeyFile.device, .fleetRoot])
  func roundTrip(file: KeyFile) throws {
    try withTemporaryDirectory { directory in
      let key = try Fixture.key(11)
      try file.create(key, in: directory)
      #expect(try file.loadKey(in: directory).publicKey == key.publicKey)
      #expect(try file.loadKey(path: file.path(in: directory)).sign([1]) == key.sign([1]))
      #expect(try mode(of: file.path(in: directory)) == 0o600)
    }
  }

  @Test("an existing key is never overwritten")
  func exclusive() throws {
    try withTemporaryDirectory { directory in
      try KeyFile.device.create(try Fixture.key(11), in: directory)
      #expect(throws: FileError.exists(path: directory.file("device.key"))) {
        try KeyFile.device.create(try Fixture.key(12), in: directory)
      }
      #expect(try KeyFile.device.loadKey(in: directory).publicKey == Fixture.key(11).publicKey)
    }
  }

  @Test("a missing key is told from a damaged one, and one kind of key is not taken for another")
  func kinds() throws {
    try withTemporaryDirectory { directory in
      #expect(throws: FileError.missing(path: directory.file("device.key"))) {
        try KeyFile.device.loadKey(in: directory)
      }
      try KeyFile.fleetRoot.create(try Fixture.key(11), in: directory)
      let path = directory.file("fleet-root.key")
      #expect(throws: FileError.damaged(path: path, reason: "its first line is not the expected title")) {
        try KeyFile.device.loadKey(path: path)
      }
    }
  }

  @Test("a key file that others may read is refused with the command that helps")
  func permissions() throws {
    try withTemporaryDirectory { directory in
      try KeyFile.device.create(try Fixture.key(11), in: directory)
      try setMode(0o640, of: directory.file("device.key"))
      let error = try #require(throws: FileError.self) { try KeyFile.device.loadKey(in: directory) }
      #expect(error.description.contains("chmod 600"))
    }
  }

  @Test("a file cut anywhere is refused, and one with any bit turned is refused or still gives the same key")
  func damage() throws {
    try withTemporaryDirectory { directory in
      let key = try Fixture.key(11)
      try KeyFile.device.create(key, in: directory)
      let path = directory.file("device.key")
      let whole = try content(of: path)
      for count in 0..<whole.count {
        try overwrite(path, with: Array(whole.prefix(count)))
        #expect(throws: FileError.self, "cut to \(count) bytes") { try KeyFile.device.loadKey(path: path) }
      }
      for extra in ["x", "\n", "seed: 00\n", "check: 0000000000000000\n"] {
        #expect(throws: FieldFile.Invalid.self, "\(extra) appended") { try parsed(whole + Array(extra.utf8)) }
      }
      var taken = 0
      for place in whole.indices {
        for bit in 0..<8 {
          var bytes = whole
          bytes[place] ^= 1 << UInt8(bit)
          guard let loaded = try? parsed(bytes) else { continue }
          taken += 1
          #expect(loaded == key.publicKey, "byte \(place), bit \(bit)")
        }
      }
      // Remarks are for people: a wrong letter in them does no harm.
      #expect(taken > 0 && taken < whole.count * 8)
    }
  }

  private func parsed(_ bytes: [UInt8]) throws -> PublicKey? {
    let file = try FieldFile.parse(bytes, title: KeyFile.device.title)
    let key = try file.value("seed") { Hex.decode($0).flatMap { SigningKey(seed: $0) } }
    return try file.value("public") == Hex.encode(key.publicKey.bytes) ? key.publicKey : nil
  }

  @Test("each file says to people what it is and what to do with it")
  func remarks() throws {
    try withTemporaryDirectory { directory in
      try KeyFile.fleetRoot.create(try Fixture.key(1), in: directory)
      let text = String(decoding: try content(of: directory.file("fleet-root.key")), as: UTF8.self)
      #expect(text.hasPrefix("Seamesh fleet root key"))
      #expect(text.contains("USB stick or to paper"))
    }
  }
}
