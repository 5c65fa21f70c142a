import Foundation
import LocalAPITestSupport
import Replication
import Seamesh
import Testing

@testable import SeameshCommand

@Suite("What a person sees", .enabled(if: isCommandBuilt))
struct TerminalTests {
  let node = FakeNode()
  let server: TestedServer

  init() throws { server = try TestedServer(node) }

  private func seamesh(_ arguments: String..., environment: [String: String] = [:]) throws -> CommandResult {
    try server.run(arguments, environment: environment)
  }

  /// With what could drive a terminal in every text that another device chose.
  private static let hostile = "a\u{1b}]0;x\u{7}b\u{202e}c\nd\u{9b}e"

  @Test("text of others is shown without what could drive the terminal, letter for letter otherwise")
  func sanitising() {
    #expect(shown(Self.hostile) == "a?]0;x?b?c?d?e")
    #expect(shown("Zoë 船 \u{1F6A2}\u{2028}\u{200d}") == "Zoë 船 \u{1F6A2}??")
    #expect(shown("") == "" && shown("\t\r\u{0}\u{7f}") == "????")
  }

  @Test("a join that waits for the last node's answer never says more than its time", arguments: [0, 29_999, 34_000])
  func joinWaits(milliseconds: UInt64) {
    let progress = JoinProgress(
      inviter: "a", elapsedMilliseconds: milliseconds, timeoutMilliseconds: 30_000, lastFailure: "b is busy")
    #expect(waiting(progress) == "waiting for device a: \(min(milliseconds / 1_000, 30)) of 30 s; b is busy")
  }

  @Test("an invitation is text alone where nobody sees a picture")
  func invitation() throws { #expect(try !seamesh("invite", "--user=ann").output.contains("\u{2588}")) }

  @Test("on a terminal an invitation is a picture, too, which a reader reads as its code", TestedServer.onTerminal)
  func pictureOfCode() throws {
    let result = try server.runOnTerminal("invite --user=ann", environment: ["NO_COLOR": "1"])
    #expect(result.status == 0, "\(result.error)")
    let picture = try #require(QRReader(halfBlocks: result.output.split(separator: "\n").map(String.init)))
    #expect(picture.text == "CODE-1" && result.output.contains("seamesh join CODE-1\n"))
  }

  @Test("a picture of a code of any length reads as it", arguments: [1, 20, 47, 77, 114, 154, 195, 208, 260, 330])
  func pictures(letters: Int) throws {
    // Letters and digits as join codes have them, in no order.
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    let code = String((0..<letters).map { alphabet[($0 * $0 * 7 + $0 * 11 + letters) % alphabet.count] })
    let picture = try #require(QRCode(code))
    #expect(try #require(QRReader(halfBlocks: picture.lines(colours: false))).text == code)
  }

  @Test("labels, users, ids and findings of other devices are never told raw")
  func hostileNames() throws { try tellHostileNames { try seamesh($0, environment: $1) } }

  @Test("labels, users, ids and findings of other devices never reach the terminal raw", TestedServer.onTerminal)
  func hostileNamesOnTerminal() throws { try tellHostileNames { try server.runOnTerminal($0, environment: $1) } }

  private func tellHostileNames(_ run: (String, [String: String]) throws -> CommandResult) throws {
    var (peer, device, status) = (PeerStatus(), DeviceStatus(), NodeStatus())
    (peer.label, peer.user, peer.detail, peer.address) = (Self.hostile, Self.hostile, Self.hostile, Self.hostile)
    (device.label, device.user, device.roles) = (Self.hostile, Self.hostile, [Self.hostile])
    (status.label, status.user, status.fleetName) = (Self.hostile, Self.hostile, Self.hostile)
    node.show(peers: [peer])
    node.show(devices: [device])
    node.show(status: status)
    node.show(findings: [DoctorFinding(.problem, "x", Self.hostile, remedy: Self.hostile)])
    for verb in ["peers", "devices", "status", "doctor"] {
      let result = try run(verb, ["NO_COLOR": "1"])
      #expect(result.status == (verb == "doctor" ? 1 : 0), "\(verb): \(result.error)")
      #expect(result.output.contains("a?]0;x?b?c?d?e"), "\(verb): \(result.output)")
      let odd = result.output.unicodeScalars.filter {
        $0 != "\n" && $0 != "\r" && $0.properties.generalCategory == .control
      }
      #expect(odd.isEmpty, "\(verb)")
    }
    try node.subscribe("p")
    node.fail(NodeError(.notFound, Self.hostile))
    #expect(try seamesh("get", "p", "c", "x").error == "seamesh: a?]0;x?b?c?d?e\n")
  }

  @Test(
    "colour is for a terminal alone, and neither with NO_COLOR, TERM=dumb nor --json",
    TestedServer.onTerminal,
    arguments: [
      ([:], "", true), (["NO_COLOR": ""], "", true), (["NO_COLOR": "1"], "", false), (["TERM": "dumb"], "", false),
      ([:], " --json", false),
    ])
  func colours(environment: [String: String], option: String, isColoured: Bool) throws {
    let result = try server.runOnTerminal("doctor" + option, environment: environment)
    #expect(result.output.contains("\u{1b}[33mwarning\u{1b}[0m") == isColoured, "\(result.output)")
    #expect(result.output.contains("\u{1b}") == isColoured)
  }

  @Test("a document is shown on one line to a program")
  func oneLine() throws {
    #expect(try server.run(["put", "p", "c", "x"], input: #"{"n":{"m":1}}"#).status == 0)
    #expect(try seamesh("get", "p", "c", "x").output == #"{"_id":"x","n":{"m":1}}"# + "\n")
  }

  @Test("a document is shown over several lines on a terminal", TestedServer.onTerminal)
  func prettiness() throws {
    #expect(try server.run(["put", "p", "c", "x"], input: #"{"n":{"m":1}}"#).status == 0)
    #expect(try server.runOnTerminal("get p c x").lines.count > 3)
    #expect(try server.runOnTerminal("get p c x --json").output.contains(#"{"_id":"x","n":{"m":1}}"#))
  }

  @Test(
    "documents that are found have a line each, but where one is wider than the terminal", TestedServer.onTerminal)
  func foundDocuments() throws {
    let long = #"{"_id":"y","text":""# + String(repeating: "x", count: 100) + #""}"#
    #expect(try server.run(["put", "p", "c", "y"], input: long).status == 0)
    #expect(try seamesh("find", "p", "c").output == long + "\n")
    #expect(try server.runOnTerminal("find p c").lines.count > 2)
    #expect(try server.runOnTerminal("find p c --json").output.contains(long))
    #expect(try server.run(["put", "p", "c", "y"], input: #"{"n":1}"#).status == 0)
    #expect(try server.runOnTerminal("find p c").output.contains(#"{"_id":"y","n":1}"#))
  }

  @Test("a put from a terminal says that it waits for the document", TestedServer.onTerminal)
  func typing() throws {
    let result = try server.runOnTerminal("put p c x", input: "{}\n")
    #expect(result.output.contains("reading the document from the terminal; end it with Ctrl-D"), "\(result.output)")
    #expect(node.ids == [.string("x")])
  }

  @Test("columns are as wide as their widest cell, numbers to the right, no space at the end of a line")
  func tables() throws {
    var (first, second) = (PeerStatus(), PeerStatus())
    (first.device, first.label, first.user, first.address) = ("0123456789abcdef", "bridge", "ann", "10.0.0.2:7000")
    (first.state, first.roundTripMilliseconds, first.behind, first.ahead) = (.connected, 1.6, 12_345, 0)
    (second.label, second.state, second.detail) = ("船 of Zoë", .refused, "full")
    node.show(peers: [first, second])
    #expect(
      try seamesh("peers").output == """
        DEVICE        LABEL     USER  ADDRESS        STATE           RTT  BEHIND  AHEAD
        0123456789ab  bridge    ann   10.0.0.2:7000  connected      2 ms   12345      0
                      船 of Zoë                       refused: full             0      0

        """)
  }

  @Test("a status shows what there is to show, and says where writes are refused")
  func status() throws {
    var status = NodeStatus()
    (status.label, status.device, status.fleetName, status.fleet) = (
      "bridge", "0123456789abcdef", "patrol", "fedcba987654"
    )
    (status.uptimeMilliseconds, status.documents, status.changes) = (93_784_000, 3, 4)
    (status.logBytes, status.databaseBytes, status.diskFreeBytes) = (999, 1_500_000, 2_000_000_000_000)
    (status.listen, status.peersConnected) = (["0.0.0.0:7000", "[::]:7000"], 2)
    node.show(status: status)
    let quiet = try seamesh("status").lines
    #expect(
      quiet.contains("device      bridge (0123456789ab)") && quiet.contains("running for 1 d 2 h")
        && quiet.contains("listening   0.0.0.0:7000, [::]:7000") && quiet.contains("log         999 B")
        && quiet.contains("store       1.5 MB") && quiet.contains("disk free   2.0 TB")
        && quiet.contains("peers       2 connected"), "\(quiet)")
    #expect(!quiet.contains { $0.hasPrefix("held") || $0.hasPrefix("writes") || $0.hasPrefix("user") })
    (status.held, status.readOnly) = (["no-grant": 2, "later": 1], true)
    node.show(status: status)
    let loud = try seamesh("status").lines
    #expect(
      loud.contains("held        1 later, 2 no-grant") && loud.contains("writes      refused: the store is read-only"))
  }

  @Test("findings are marked by their weight, with the remedy below")
  func findings() throws {
    node.show(findings: [
      DoctorFinding(.ok, "store", "The store is well.", remedy: ""),
      DoctorFinding(.warning, "clock", "The clock is off.", remedy: "Set it."),
      DoctorFinding(.problem, "disk-full", "The disk is full.", remedy: "Make room."),
    ])
    #expect(
      try seamesh("doctor").output == """
        ok       The store is well.
        warning  The clock is off.
                 Set it.
        problem  The disk is full.
                 Make room.

        """)
  }

  @Test("where there is nothing to show, a sentence says what to do")
  func nothing() throws {
    node.show(peers: [])
    #expect(try seamesh("peers").output == "no other node has been seen; seamesh doctor may know why\n")
    #expect(try seamesh("peers", "--json").output == "{\"peers\":[]}\n")
    #expect(try seamesh("partitions").output.contains("seamesh subscribe PARTITION asks for some"))
    node.show(devices: [])
    #expect(try seamesh("devices").lines.count == 1)
  }

  @Test(
    "progress is a bar where the total is known, a count otherwise",
    arguments: [
      (0, 10, "x [..............................] 0 %"), (5, 10, "x [###############...............] 50 %"),
      (10, 10, "x [##############################] 100 %"), (11, 10, "x [##############################] 100 %"),
      (-1, 10, "x [..............................] 0 %"), (7, 0, "x 7 pages"), (7, nil, "x 7 pages"),
    ] as [(Int64, Int64?, String)])
  func progress(done: Int64, total: Int64?, line: String) {
    #expect(ProgressBar.line("x", done: done, total: total, unit: "pages") == line)
  }

  @Test(
    "progress is drawn once a second has gone by, over itself, and taken away at the end",
    TestedServer.onTerminal)
  func drawing() throws {
    let quick = try server.runOnTerminal("import p c " + server.file("a.json", #"{"_id":1}"#))
    #expect(!quick.output.contains("\u{1b}[K") && quick.output.contains("imported 1"))
    // A busy node makes it wait a second before it asks again.
    node.beBusy(times: 2)
    let lines = (0..<1_200).map { "{\"_id\":\($0)}" }.joined(separator: "\n")
    let slow = try server.runOnTerminal("import p c " + server.file("b.json", lines))
    #expect(slow.output.contains("\r\u{1b}[Kimporting [") && slow.output.contains("imported 1200"), "\(slow.output)")
    let last = slow.output.range(of: "\r\u{1b}[K", options: .backwards).map { slow.output[$0.upperBound...] }
    #expect(last?.hasPrefix("imported 1200") == true)
    node.beBusy(times: 2)
    #expect(try !server.runOnTerminal("import p c --json " + server.file("b.json", lines)).output.contains("\u{1b}"))
  }

  @Test(
    "bytes and times are shown in the largest units that fit",
    arguments: [
      (0, "0 B"), (1_000, "1.0 kB"), (999_999, "999.9 kB"), (1_000_000, "1.0 MB"), (2_500_000_000_000_000, "2500.0 TB"),
    ] as [(Int64, String)])
  func bytes(count: Int64, text: String) {
    #expect(byteCount(count) == text)
  }

  @Test(
    "a time has its two largest units",
    arguments: [
      (0, "0 s"), (59_999, "59 s"), (60_000, "1 min 0 s"), (3_600_000, "1 h 0 min"), (90_061_000, "1 d 1 h"),
    ] as [(Int64, String)])
  func durations(milliseconds: Int64, text: String) {
    #expect(duration(milliseconds: milliseconds) == text)
  }
}
