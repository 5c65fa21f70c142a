import Replication
import Testing
import Wire
import TestSupport

@testable import Identity

@Suite struct JoinCodeTests {
  private func typical() throws -> JoinCode {
    JoinCode(
      fleet: try Fixture.fleet(), invitation: InvitationID(inviter: try Fixture.key(3).publicKey, serial: 12),
      secret: try Fixture.secret(), expires: 1_800_000_000, addresses: ["192.168.1.20:41234"])
  }

  @Test("what was encoded is parsed, with and without optional parts")
  func roundTrip() throws {
    let code = try typical()
    #expect(try JoinCode.parse(code.encode()) == code)
    var bare = code
    (bare.invitation, bare.expires, bare.addresses) = (
      InvitationID(inviter: bare.invitation.inviter, serial: .max), .max, []
    )
    #expect(try JoinCode.parse(bare.encode()) == bare)
    var full = code
    full.addresses = ["192.168.1.20:0", "[fe80::1%eth0]:41234", "relay.example.org:7", "255.255.255.255:65535"]
    #expect(try JoinCode.parse(full.encode()) == full)
  }

  @Test("a typical code has at most 200 characters of base32")
  func size() throws {
    let text = try typical().encode()
    #expect(text.count <= 200)
    #expect(text.allSatisfy { ("A"..."Z").contains($0) || ("2"..."7").contains($0) })
  }

  @Test(
    "addresses that only look like IPv4 come back as they were",
    arguments: [
      "010.0.0.1:80", "1.2.3.4:080", "1.2.3:80", "1.2.3.4.5:80", "1.2.3.4", "1.2.3.256:80", "1.2.3.4:+80", ":",
    ])
  func oddAddresses(address: String) throws {
    var code = try typical()
    code.addresses = [Text(address)]
    #expect(try JoinCode.parse(code.encode()).addresses == [Text(address)])
  }

  @Test("hyphens, blanks, line ends and lower case make no difference")
  func tolerance() throws {
    let code = try typical()
    let text = try code.encode()
    var grouped = ""
    for (place, character) in text.enumerated() {
      if place % 5 == 0 && place > 0 { grouped += place % 40 == 0 ? "-\n" : "-" }
      grouped.append(character)
    }
    #expect(try JoinCode.parse("  " + grouped.lowercased() + "\n") == code)
  }

  @Test("every single mistyped character is found")
  func mistyped() throws {
    let text = Array(try typical().encode())
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    for place in text.indices {
      for character in alphabet where character != text[place] {
        var wrong = text
        wrong[place] = character
        #expect(throws: JoinCode.Invalid.mistyped) { try JoinCode.parse(String(wrong)) }
      }
    }
  }

  @Test("codes with characters left out, doubled, swapped or appended are found")
  func misplaced() throws {
    let text = Array(try typical().encode())
    for place in text.indices {
      #expect(throws: JoinCode.Invalid.self) { try JoinCode.parse(String(text[..<place])) }
      var changed = text
      changed.remove(at: place)
      #expect(throws: JoinCode.Invalid.self) { try JoinCode.parse(String(changed)) }
      changed = text
      changed.insert(text[place], at: place)
      #expect(throws: JoinCode.Invalid.self) { try JoinCode.parse(String(changed)) }
      changed = text
      changed.swapAt(place, text.index(before: text.endIndex))
      if changed != text { #expect(throws: JoinCode.Invalid.self) { try JoinCode.parse(String(changed)) } }
    }
    #expect(throws: JoinCode.Invalid.self) { try JoinCode.parse(String(text) + "A") }
  }

  @Test("a character of no code is named with its place", arguments: ["0", "1", "8", "é", "="])
  func foreign(character: Character) throws {
    var text = Array(try typical().encode())
    text[9] = character
    let error = try #require(throws: JoinCode.Invalid.self) { try JoinCode.parse(String(text)) }
    #expect(error == .character(character, place: 10))
    #expect(error.description.contains("'\(character)' at place 10"))
  }

  @Test("empty and endless texts are refused before anything else")
  func extremes() {
    #expect(throws: JoinCode.Invalid.empty) { try JoinCode.parse("") }
    #expect(throws: JoinCode.Invalid.empty) { try JoinCode.parse(" - \n") }
    #expect(throws: JoinCode.Invalid.mistyped) { try JoinCode.parse("AAAA") }
    #expect(throws: JoinCode.Invalid.tooLong(limit: JoinCode.byteLimit * 2)) {
      try JoinCode.parse(String(repeating: "A", count: JoinCode.byteLimit * 2 + 1))
    }
  }

  /// Content with the check that belongs to it, as a hostile maker of codes would give.
  private func sealed(_ content: [UInt8]) -> String { Base32.encode(content + SHA256.hash(content).bytes.prefix(4)) }

  @Test("a code of a later version says so, whatever follows")
  func version() throws {
    #expect(throws: JoinCode.Invalid.version(2)) { try JoinCode.parse(sealed([0x82, 0x02, 0xf6])) }
    #expect(JoinCode.Invalid.version(2).description.contains("install a newer one"))
  }

  @Test("well-checked nonsense is refused: cut, padded, random and over the limits")
  func nonsense() throws {
    let content = Array(try Base32.decode(typical().encode()).dropLast(4))
    #expect(throws: Never.self) { try JoinCode.parse(sealed(content)) }
    for count in 0..<content.count {
      #expect(throws: JoinCode.Invalid.self) { try JoinCode.parse(sealed(Array(content.prefix(count)))) }
    }
    #expect(throws: JoinCode.Invalid.malformed) { try JoinCode.parse(sealed(content + [0])) }
    var generator = SplitMix64(seed: 0x701)
    for _ in 0..<2_000 {
      var bytes = content
      bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      // Any outcome but a crash: a turned bit of the secret is still a secret.
      _ = try? JoinCode.parse(sealed(bytes))
    }
  }

  @Test("what no code can hold is refused when it is made")
  func limits() throws {
    func refused(_ change: (inout JoinCode) -> Void) throws -> String {
      var code = try typical()
      change(&code)
      return try #require(throws: JoinCode.Invalid.self) { try code.encode() }.description
    }
    let long = Text(String(repeating: "x", count: 256))
    #expect(try refused { $0.addresses = [long] }.contains("address of 256 bytes"))
    #expect(try refused { $0.addresses = ["a", "b", "c", "d", "e"] }.contains("5 addresses"))
  }

  @Test("the largest code that can be made can be parsed")
  func largest() throws {
    let long = Text(String(repeating: "x", count: 255))
    var code = try typical()
    code.addresses = [long, long, long, long]
    #expect(try JoinCode.parse(code.encode()) == code)
  }
}
